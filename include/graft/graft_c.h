/* Graft's operators behind C functions, for programs in other languages. libgraft_plugins.so has them beside its
 * TensorRT plugins, and needs no TensorRT for them; libgraft_c.so has them in a build without CUDA, for the CPU alone.
 *
 * Functions that return int return 0 for success. After any other value, or a null pointer, graft_last_error() says in
 * this thread what was found and what is allowed. Nothing here throws, exits, or resets the device. */
#ifndef GRAFT_GRAFT_C_H
#define GRAFT_GRAFT_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GRAFT_API __attribute__((visibility("default")))
#else
#define GRAFT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming): names as C has them */

/* An operator with values for its attributes. Any number of threads may run it at once. */
typedef struct graft_operator graft_operator;

#define GRAFT_MAX_RANK 8

/* A tensor of a call. Host memory for the CPU, device memory for CUDA; inputs and outputs do not overlap. */
typedef struct graft_tensor {
  const char* dtype;  /* "f32", "f16", "bf16", "i8", "f8e4m3fn", ...: as graft_definitions has them */
  const char* layout; /* "linear", "hwc8", "chw32" */
  int64_t extents[GRAFT_MAX_RANK];
  int32_t rank;
  void* data; /* graft_storage_bytes() of them; may be null where nothing runs */
} graft_tensor;

/* All tensors of a call, in the order of the operator's ports. Optional inputs may be left out at the end; attributes
 * supply them then, and the first graft_run_cuda copies those to the device. */
typedef struct graft_call {
  const graft_tensor* inputs;
  int32_t input_count;
  const graft_tensor* outputs;
  int32_t output_count;
} graft_call;

GRAFT_API const char* graft_version(void);
/* 1 if the library has CUDA kernels. */
GRAFT_API int graft_has_cuda(void);
GRAFT_API const char* graft_last_error(void);

/* The operators as a JSON array, in the order of ops.inc; with a `file` that graft_load_operators has opened, those of
 * that library, in the order of its list. Each entry: "function", its name in snake case; "name"; "doc"; "source";
 * "attributes", each "name", "type" (float, int, string, floats, ints), "default" (null where it is required),
 * "choices", "range" and "doc"; "ports", each "name", "kind" (input, optional_input, variadic_input, shape_input,
 * output, size_output), "shape" and "doc"; "rows", the types of all ports that go together where tensors are linear.
 * Valid until this thread's next call. */
GRAFT_API const char* graft_definitions(const char* file);

/* `attributes` is a JSON object: {"alpha": 0.1, "axes": [1], "epsilon_mode": "max"}; null or "{}" for the defaults;
 * "inf" and
 * "-inf" are numbers too. Null
 * for an unknown operator and for an attribute that it refuses. */
GRAFT_API graft_operator* graft_operator_create(const char* name, const char* attributes);
GRAFT_API void graft_operator_destroy(graft_operator* op);

/* Writes type, layout and extents of `outputs` from those of linear inputs. An extent that depends on data is as large
 * as it may become: the memory of a call has room for that, and its results lie at the beginning of it. Shape inputs
 * are the last ones here, of type i64, and their extents are their values; a call does not have them. */
GRAFT_API int graft_infer_outputs(const graft_operator* op, const graft_tensor* inputs, int32_t input_count,
                                  graft_tensor* outputs, int32_t output_count);
/* The same with sizes that are not known. `shapes` is a JSON array of the inputs' shapes, of a shape input its values:
 * [["n", 3, "h", "w"]]. The result has those of the outputs, each size a number, a name, or ["add", left, right] with
 * one of add, subtract, multiply, min, max, floor_divide, ceil_divide, equal and less; ["data_size", optimum, largest]
 * depends on data. Null where an input is refused; valid until this thread's next call. */
GRAFT_API const char* graft_infer_symbolic(const graft_operator* op, const char* shapes);
/* The layouts of all ports, in their order and optional ones among them, where the first input has this type, layout
 * and rank, as a JSON array; "null" where the operator takes no such input. Valid until this thread's next call. */
GRAFT_API const char* graft_layouts(const graft_operator* op, const char* dtype, const char* layout, int32_t rank);
/* The ONNX function of a node with `input_count` inputs, the first of this type and rank, as a JSON object: "name" and
 * "body", text of nodes in which @name is the node's attribute; "null" where standard operators cannot express it.
 * Valid until this thread's next call. */
GRAFT_API const char* graft_function(const graft_operator* op, const char* dtype, int32_t rank, int32_t input_count);

/* Bytes that the tensor takes: the padding of a vectorized layout counts. -1 where the description is wrong. */
GRAFT_API int64_t graft_storage_bytes(const graft_tensor* tensor);
/* Bytes of scratch memory on the device that graft_run_cuda needs for the call, or -1. */
GRAFT_API int64_t graft_workspace_bytes(const graft_operator* op, const graft_call* call);
/* The CUDA implementations that take the call, best first, joined by commas. Valid until this thread's next call. */
GRAFT_API const char* graft_cuda_variants(const graft_operator* op, const graft_call* call);

/* The reference kernel: linear layouts, on `threads` threads. */
GRAFT_API int graft_run_cpu(const graft_operator* op, const graft_call* call, int32_t threads);
/* Queues the call on a cudaStream_t; legal while the stream is captured, but for a first call that has to copy what
 * attributes supply. `variant`: the first that fits if null or empty.
 * The workspace is aligned to 256 bytes. Like a plugin's enqueue it does not check shapes and weights again: ask
 * graft_workspace_bytes or graft_cuda_variants first, which do. */
GRAFT_API int graft_run_cuda(const graft_operator* op, const graft_call* call, void* workspace, void* stream,
                             const char* variant);
/* Queues a kernel that does nothing: what a launch costs. */
GRAFT_API int graft_run_empty(void* stream);

/* Opens a library of somebody's own, as docs/guide/add_an_operator.md makes one, and adds its operators to those that
 * graft_operator_create, graft_timed_cases and graft_random_cases know. Its code runs in this process. */
GRAFT_API int graft_load_operators(const char* file);

/* What `graft bench` times, as a JSON array. Each entry: "name", unique; "operator"; "attributes", all of them;
 * "inputs" and "outputs", each "port", "dtype", "layout", "shape"; "to_reach": {"of_copy", "of_eager"}, 0 where nothing
 * is asked; "operations", 0 where the memory sets the limit; "choose_variant", whether TensorRT times the variants and
 * takes the fastest. Null if an operator refuses a case; valid until this thread's next call. */
GRAFT_API const char* graft_timed_cases(void);
/* The same of `count` random problems of each operator, from the ranges beside its cases; the same for the same seed.
 * Valid until this thread's next call. */
GRAFT_API const char* graft_random_cases(uint64_t seed, int32_t count);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* GRAFT_GRAFT_C_H */
