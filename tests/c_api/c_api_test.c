// Runs operators through the C functions: results, sizes, and what is refused.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graft/graft_c.h"

/* Programs that were compiled with an earlier version have these sizes (docs/versions.md). */
_Static_assert(sizeof(graft_tensor) == 96, "graft_tensor changed its size");
_Static_assert(sizeof(graft_call) == 32, "graft_call changed its size");

static void require(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "failed: %s; last error: %s\n", what, graft_last_error());
  exit(1);
}

static void require_error(const char* part) { require(strstr(graft_last_error(), part) != NULL, part); }

int main(void) {
  require(strlen(graft_version()) > 0, "version");

  const float x[4] = {-2, -1, 0, 3};
  float y[4] = {0};
  graft_tensor input = {"f32", "linear", {2, 2}, 2, (void*)x};
  graft_tensor output = {"f32", "linear", {2, 2}, 2, y};
  graft_call call = {&input, 1, &output, 1};
  graft_operator* op = graft_operator_create("LeakyReLU", "{\"alpha\": 0.5}");
  require(op != NULL, "create");
  require(graft_run_cpu(op, &call, 2) == 0, "run");
  require(y[0] == -1 && y[1] == -0.5F && y[2] == 0 && y[3] == 3, "result");
  require(graft_workspace_bytes(op, &call) == 0, "workspace");
  require((graft_cuda_variants(op, &call)[0] != '\0') == graft_has_cuda(), "variants");

  output.extents[1] = 3;
  require(graft_run_cpu(op, &call, 1) != 0, "a wrong output shape is refused");
  require_error("output 0 has shape 2x3");
  require(graft_workspace_bytes(op, &call) == -1, "its workspace too");
  input.dtype = "f8";
  require(graft_run_cpu(op, &call, 1) != 0, "an unknown type is refused");
  require_error("f8");
  graft_operator_destroy(op);
  graft_operator_destroy(NULL);

  require(graft_operator_create("LeakyRLU", NULL) == NULL, "unknown operator");
  require_error("LeakyRLU");
  require(graft_operator_create("LeakyReLU", "{\"slope\": 1}") == NULL, "unknown attribute");
  require_error("slope");
  require(graft_operator_create("LeakyReLU", "{\"alpha\": \"x\"}") == NULL, "attribute of a wrong type");
  require(graft_operator_create("LeakyReLU", "{alpha") == NULL, "no JSON");
  require(graft_operator_create("Padding", "{\"pads\": [0, 1.9, 0, 0]}") == NULL,
          "a fraction where it counts elements");
  require_error("pads");

  // Channels lie in vectors of 8, so 9 of them take 16.
  const graft_tensor vectorized = {"f16", "hwc8", {1, 9, 2, 3}, 4, NULL};
  require(graft_storage_bytes(&vectorized) == 2 * 16 * 2 * 3, "storage");

  // A null pointer is an error of the caller's, and no crash.
  op = graft_operator_create("LeakyReLU", NULL);
  require(op != NULL, "create with defaults");
  input.dtype = "f32";
  output.extents[1] = 2;
  require(graft_operator_create(NULL, NULL) == NULL, "no name");
  require_error("the name of the operator is a null pointer");
  require(graft_infer_outputs(NULL, &input, 1, &output, 1) != 0, "no operator to infer with");
  require_error("the operator is a null pointer");
  require(graft_infer_outputs(op, NULL, 1, &output, 1) != 0, "no inputs");
  require_error("inputs is a null pointer");
  require(graft_infer_outputs(op, &input, -1, &output, 1) != 0, "fewer than no inputs");
  require_error("the number of inputs is -1");
  require(graft_infer_outputs(op, &input, 1, NULL, 1) != 0, "no outputs");
  require_error("outputs is a null pointer");
  require(graft_infer_symbolic(NULL, "[[1]]") == NULL, "no operator for names of sizes");
  require(graft_infer_symbolic(op, NULL) == NULL, "no shapes");
  require_error("the JSON text of the shapes is a null pointer");
  require(graft_layouts(NULL, "f32", "linear", 2) == NULL, "no operator for layouts");
  require(graft_layouts(op, NULL, "linear", 2) == NULL, "no type for layouts");
  require_error("the type is a null pointer");
  require(graft_layouts(op, "f32", NULL, 2) == NULL, "no layout");
  require_error("the layout is a null pointer");
  require(graft_function(NULL, "f32", 2, 1) == NULL, "no operator for a function");
  require(graft_function(op, NULL, 2, 1) == NULL, "no type for a function");
  require(graft_storage_bytes(NULL) == -1, "no tensor");
  require_error("the tensor is a null pointer");
  require(graft_workspace_bytes(NULL, &call) == -1, "no operator for a workspace");
  require(graft_workspace_bytes(op, NULL) == -1, "no call for a workspace");
  require_error("the call is a null pointer");
  require(graft_cuda_variants(NULL, &call) == NULL, "no operator for variants");
  require(graft_cuda_variants(op, NULL) == NULL, "no call for variants");
  require(graft_run_cpu(NULL, &call, 1) != 0, "no operator to run");
  require(graft_run_cpu(op, NULL, 1) != 0, "no call to run");
  require(graft_run_cuda(NULL, &call, NULL, NULL, NULL) != 0, "no operator to run on a GPU");
  require(graft_run_cuda(op, NULL, NULL, NULL, NULL) != 0, "no call to run on a GPU");
  require(graft_load_operators(NULL) != 0, "no file of operators");
  require_error("the file is a null pointer");
  const graft_call no_tensors = {NULL, 1, NULL, 1};
  require(graft_run_cpu(op, &no_tensors, 1) != 0, "no tensors");
  require_error("inputs is a null pointer");
  input.data = NULL;
  require(graft_run_cpu(op, &call, 1) != 0, "no memory of an input");
  require_error("the data of input 0 is a null pointer");
  require(graft_run_cuda(op, &call, NULL, NULL, NULL) != 0, "no memory of an input on a GPU");
  input.data = (void*)x;
  output.data = NULL;
  require(graft_run_cpu(op, &call, 1) != 0, "no memory of an output");
  require_error("the data of output 0 is a null pointer");
  require(graft_workspace_bytes(op, &call) == 0, "where nothing runs, no memory is needed");
  graft_operator_destroy(op);

  const char* cases = graft_timed_cases();
  require(cases != NULL && cases[0] == '[' && strstr(cases, "\"LeakyReLU\"") != NULL, "timed cases");
  return 0;
}
