// Runs operators through the C functions: results, sizes, and what is refused.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graft/graft_c.h"

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
  require(graft_operator_create("Padding", "{\"pads\": [0, 1.9, 0, 0]}") == NULL, "a fraction where it counts elements");
  require_error("pads");

  // Channels lie in vectors of 8, so 9 of them take 16.
  const graft_tensor vectorized = {"f16", "hwc8", {1, 9, 2, 3}, 4, NULL};
  require(graft_storage_bytes(&vectorized) == 2 * 16 * 2 * 3, "storage");

  const char* cases = graft_timed_cases();
  require(cases != NULL && cases[0] == '[' && strstr(cases, "\"LeakyReLU\"") != NULL, "timed cases");
  return 0;
}
