/* Graft's operators as C functions, for programs in other languages. libgraft_plugins.so contains these functions
 * and its TensorRT plugins; the functions need no TensorRT. A build without CUDA has them in libgraft_c.so, for the
 * CPU only.
 *
 * Functions that return int return 0 for success. After another value or a null pointer, graft_last_error() returns
 * what was found and what is allowed, for this thread. No function throws, exits, or resets the device. */
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

/* An operator with values for its attributes. Any number of threads may run one operator at once. */
typedef struct graft_operator graft_operator;

#define GRAFT_MAX_RANK 8

/* A tensor of a call: host memory for the CPU, device memory for CUDA. Inputs and outputs do not overlap. */
typedef struct graft_tensor {
  const char* dtype;  /* "f32", "f16", "bf16", "i8", "f8e4m3fn", ...: see "rows" of graft_definitions */
  const char* layout; /* "linear", "hwc8", "chw32" */
  int64_t extents[GRAFT_MAX_RANK];
  int32_t rank;
  void* data; /* graft_storage_bytes() bytes; may be null where nothing runs */
} graft_tensor;

/* The tensors of a call, in the order of the operator's ports. Optional inputs at the end may be left out:
 * attributes supply them then, and the first graft_run_cuda copies those to the device. */
typedef struct graft_call {
  const graft_tensor* inputs;
  int32_t input_count;
  const graft_tensor* outputs;
  int32_t output_count;
} graft_call;

GRAFT_API const char* graft_version(void);
/* Returns 1 if the library has CUDA kernels, else 0. */
GRAFT_API int graft_has_cuda(void);
GRAFT_API const char* graft_last_error(void);

/* Returns the operators as a JSON array. With `file` null: the linked operators, in the order of ops.inc; otherwise
 * those of the library `file`, which is loaded if it is not yet, in the order of its list. Each entry: "function",
 * the name in snake case; "name"; "doc"; "source"; "attributes", each "name", "type" (float, int, string, floats,
 * ints), "default" (null where the attribute is required), "choices", "range" and "doc"; "ports", each "name",
 * "kind" (input, optional_input, variadic_input, shape_input, output, size_output), "shape" and "doc"; "rows", the
 * combinations of types of all ports where tensors are linear. Valid until this thread's next call. */
GRAFT_API const char* graft_definitions(const char* file);

/* Creates an operator. `attributes` is a JSON object: {"alpha": 0.1, "axes": [1], "epsilon_mode": "max"}; null or
 * "{}" for the defaults; "inf" and "-inf" are numbers too. Returns null for an unknown operator and for an attribute
 * that the operator refuses. */
GRAFT_API graft_operator* graft_operator_create(const char* name, const char* attributes);
GRAFT_API void graft_operator_destroy(graft_operator* op);

/* Writes type, layout and extents of `outputs`, computed from those of linear inputs. An extent that depends on data
 * has its largest value: the memory of a call has room for that, and its results lie at the beginning of the memory.
 * Shape inputs are the last inputs here, of type i64, and their extents are their values; a graft_call does not
 * contain them. */
GRAFT_API int graft_infer_outputs(const graft_operator* op, const graft_tensor* inputs, int32_t input_count,
                                  graft_tensor* outputs, int32_t output_count);
/* Returns the shapes of the outputs where sizes are not known. `shapes` is a JSON array with the shape of each
 * input, or the values of a shape input: [["n", 3, "h", "w"]]. The result is an array with the shape of each output.
 * A size is a number, a name, or ["add", left, right] with one of add, subtract, multiply, min, max, floor_divide,
 * ceil_divide, equal and less; ["data_size", optimum, largest] depends on data. Null where an input is refused.
 * Valid until this thread's next call. */
GRAFT_API const char* graft_infer_symbolic(const graft_operator* op, const char* shapes);
/* Returns the layouts of all ports, in their order and including optional ones, where the first input has this type,
 * layout and rank, as a JSON array; "null" where the operator does not accept such an input. Valid until this
 * thread's next call. */
GRAFT_API const char* graft_layouts(const graft_operator* op, const char* dtype, const char* layout, int32_t rank);
/* Returns the ONNX function of a node with `input_count` inputs, the first of this type and rank, as a JSON object:
 * "name" and "body", the nodes as text in which @name is the node's attribute; "null" where standard operators
 * cannot express the operator. Valid until this thread's next call. */
GRAFT_API const char* graft_function(const graft_operator* op, const char* dtype, int32_t rank, int32_t input_count);

/* Returns the bytes of a tensor in memory, including the padding of a vectorized layout; -1 for an invalid
 * description. */
GRAFT_API int64_t graft_storage_bytes(const graft_tensor* tensor);
/* Returns the bytes of device scratch memory that graft_run_cuda needs for the call, or -1 for an error. */
GRAFT_API int64_t graft_workspace_bytes(const graft_operator* op, const graft_call* call);
/* Returns the CUDA implementations that fit the call, in order of preference, joined by commas. Valid until this
 * thread's next call. */
GRAFT_API const char* graft_cuda_variants(const graft_operator* op, const graft_call* call);

/* Runs the reference kernel on `threads` threads; linear layouts only. */
GRAFT_API int graft_run_cpu(const graft_operator* op, const graft_call* call, int32_t threads);
/* Queues the call on a cudaStream_t; legal while the stream is captured, except for a first call that has to copy
 * attributes to the device. `variant` names the implementation; where it is null or empty, the first that fits runs.
 * The workspace is aligned to 256 bytes. Like a plugin's enqueue, it does not check shapes and weights: call
 * graft_workspace_bytes or graft_cuda_variants first, which do. */
GRAFT_API int graft_run_cuda(const graft_operator* op, const graft_call* call, void* workspace, void* stream,
                             const char* variant);
/* Queues an empty kernel, to measure the time of a launch. */
GRAFT_API int graft_run_empty(void* stream);

/* Loads a library of operators, built as the guide "Your first operator" describes. Afterwards graft_operator_create,
 * graft_timed_cases and graft_random_cases accept its operators. Its code runs in this process. */
GRAFT_API int graft_load_operators(const char* file);

/* Returns the cases that `graft bench` times, as a JSON array. Each entry: "name", unique; "operator"; "attributes",
 * all of them; "inputs" and "outputs", each "port", "dtype", "layout", "shape"; "to_reach": {"of_copy", "of_eager"},
 * 0 where there is no target; "operations", 0 where memory bandwidth is the limit; "choose_variant", whether
 * TensorRT times the variants and runs the fastest. Null if an operator refuses a case. Valid until this thread's
 * next call. */
GRAFT_API const char* graft_timed_cases(void);
/* Returns `count` random problems of each operator in the format of graft_timed_cases, drawn from the ranges
 * declared with its cases; the same problems for the same seed. Valid until this thread's next call. */
GRAFT_API const char* graft_random_cases(uint64_t seed, int32_t count);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* GRAFT_GRAFT_C_H */
