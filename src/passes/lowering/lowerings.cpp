// Pass lower_to_native: writes nodes that TensorRT refuses with layers that it has, by the list of lowerings in this
// file. Pass guard_grid_sample: does the same for nodes that TensorRT accepts and is reported to compute wrongly. Pass
// lower_volume_sampling: does the same for nodes that only older releases of TensorRT refuse.
//
//   DFT(x)                becomes   Reshape(MatMul(Reshape(x), matrix))
//   GridSample(x, grid)   becomes   the weighted sum of four GatherND, where the guard is requested
//
// Each lowering is tried on the nodes of its operator, and its proposal is proven like any other. If the CPU engine
// does not have the operator, nothing can be run: the definition of the operator is then the proof, and the tests
// compare each lowering with results of ONNX's own tests and of ONNX Runtime (tests/import, tests/passes).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_set>

#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "onnx/extract.hpp"
#include "onnx/functions.hpp"
#include "onnx/opset.hpp"
#include "onnx/shape_inference.hpp"
#include "onnx/standard_operators.hpp"
#include "passes/lowering/cost.hpp"
#include "passes/lowering/lowering.hpp"
#include "passes/lowering/refused_forms.hpp"
#include "passes/lowering/surroundings.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

constexpr std::string_view transposed_recurrence = "the same operator with layout = 0, between Transpose nodes";
constexpr std::string_view computed_in_f32 = "graft convert computes it in f32";
constexpr std::string_view quantized_forms = "unsigned integers, a zero point other than 0, or 16 or 32 bits";
constexpr std::string_view rewrites_quantization =
    "graft convert replaces it by i8 with the zero point 0 where that is exact, and otherwise computes it in f32";

constexpr std::string_view known_sequence =
    "constant positions; a sequence from SequenceConstruct, SequenceEmpty or SplitToSequence, which SequenceInsert and "
    "SequenceErase may change";
constexpr std::string_view resolves_sequences =
    "graft convert replaces it if the tensors of its sequence, and its position, are known before the network runs";

constexpr std::string_view known_optional = "a tensor or a sequence, or an optional that Optional creates";
constexpr std::string_view resolves_optionals =
    "graft convert replaces it if it is known before the network runs whether the optional has an element";

/// Returns the entry of `all_lowerings` for an operator that TensorRT supports, but whose output sizes must not be
/// computed from data.
constexpr Lowering of_computed_sizes(std::string_view op_type) {
  return {.op_type = op_type,
          .refused = "sizes computed from inputs that are not i32 or i64, or from a result of If",
          .is_refused = has_size_from_data,
          .form = "the same operator, whose sizes TensorRT reads when the engine runs",
          .needs = "sizes of integers, outside of Loop and Scan",
          .lower = lower_computed_size};
}

/// Returns the entry of `all_lowerings` for an operator that TensorRT does not support at all. `form` describes the
/// replacement and `needs` its conditions, both for the documentation; `lower` writes the replacement.
constexpr Lowering of_every_form(std::string_view domain, std::string_view op_type, std::string_view form,
                                 std::string_view needs, std::optional<Replacement> (*lower)(Site& site)) {
  return {.op_type = op_type,
          .refused = "every form",
          .is_refused = nullptr,
          .form = form,
          .needs = needs,
          .lower = lower,
          .domain = domain};
}

/// Returns the entry of `all_lowerings` for an operator of the domain com.microsoft. The other parameters are those of
/// of_every_form().
constexpr Lowering of_onnxruntime(std::string_view op_type, std::string_view form, std::string_view needs,
                                  std::optional<Replacement> (*lower)(Site& site)) {
  return of_every_form(onnx::onnxruntime_domain, op_type, form, needs, lower);
}

/// Returns the entry of `all_lowerings` for a plugin of another library, whose name is the operator type of the node.
/// The other parameters are those of of_every_form().
constexpr Lowering of_plugin(std::string_view name, std::string_view form, std::string_view needs,
                             std::optional<Replacement> (*lower)(Site& site)) {
  return of_every_form(any_domain, name, form, needs, lower);
}

constexpr std::array all_lowerings = {
    Lowering{"MatMul", "a vector multiplied by more than one matrix", multiplies_vector_by_matrices,
             "MatMul of a matrix of one row, between Unsqueeze and Squeeze", "f32, f16 or bf16", lower_vector_product},
    Lowering{"TopK", "K above 3840", has_large_k,
             "several TopK of at most 3840, each without the elements already selected",
             "a constant K; f32, f16 or bf16", lower_top_k,
             "graft convert computes it in parts of 3840 if K is a constant and the data are floating-point"},
    Lowering{"DFT", "every form", nullptr, "MatMul with the matrix of the transform",
             "a signal of fixed length, and a matrix of at most 16 M elements", lower_dft},
    Lowering{"Col2Im", "every form", nullptr,
             "Reshape and Transpose where blocks do not overlap, otherwise ConvTranspose",
             "fixed sizes of image and blocks, at most 3 axes", lower_col2im},
    Lowering{"MaxPool", "the output Indices", returns_indices, "Gather of the windows, ArgMax and ReduceMax",
             "fixed sizes (the batch may be dynamic)", lower_max_pool},
    Lowering{"MaxPool", "dilations", has_dilations,
             "the maximum of strided slices, one for each position in the window",
             "windows of at most 128 positions; f32, f16 or bf16", lower_dilated_pool},
    Lowering{"AveragePool", "dilations", has_dilations,
             "the mean of strided slices, one for each position in the window",
             "windows of at most 128 positions; fixed sizes if count_include_pad is 0", lower_dilated_pool},
    Lowering{"LpPool", "dilations", has_dilations, "the norm of strided slices, one for each position in the window",
             "windows of at most 128 positions; f32, f16 or bf16", lower_dilated_pool},
    Lowering{"LpPool", "p above 2", has_other_norm, "Pow, AveragePool, and the root of the sum",
             "a known rank; f32, f16 or bf16", lower_lp_pool},
    Lowering{"MaxUnpool", "every form", nullptr, "ScatterElements into a tensor of zeros",
             "fixed sizes (the batch may be dynamic)", lower_max_unpool},
    Lowering{"DeformConv", "every form", nullptr, "GridSample and a convolution of 1 x 1",
             "images of fixed size (the batch may be dynamic)", lower_deform_conv},
    Lowering{"Resize", "antialias, tf_crop_and_resize, half_pixel_symmetric or keep_aspect_ratio_policy",
             is_refused_resize, "MatMul with a matrix of weights for each axis",
             "fixed sizes (the batch may be dynamic); f32, f16 or bf16", lower_resize},
    Lowering{"Resize", "mode cubic and dynamic height or width, after an If, Loop or Scan", follows_body,
             "the weighted sum of four Gather for each axis", "constant scales or sizes; f32, f16 or bf16",
             lower_cubic_resize},
    Lowering{"Attention",
             "f32, a head size below 32 or above 256, optional outputs, past keys, values of another width, "
             "nonpad_kv_seqlen, a window, a mask that is shorter than the keys or combined with is_causal, softcap, "
             "softmax_precision, or a place in a body",
             nullptr, "MatMul, Softmax and MatMul", "a known number and size of heads", lower_attention},
    Lowering{.op_type = "FlexAttention",
             .refused = "every form",
             .is_refused = nullptr,
             .form = "MatMul, Softmax and MatMul, with the nodes of score_mod and prob_mod between them",
             .needs = "a known number and size of heads; f32, f16 or bf16",
             .lower = lower_flex_attention,
             .domain = onnx::preview_domain},
    Lowering{"LinearAttention", "every form", nullptr,
             "a Scan along the sequence, whose state is a matrix of each head",
             "known sizes of the heads; f32, f16 or bf16", lower_linear_attention},
    Lowering{"LSTM", "input_forget", couples_gates,
             "LSTM with the negated weights of the input gate as those of the forget gate",
             "the activation Sigmoid, or HardSigmoid with beta = 0.5, for the gates", lower_coupled_gates},
    Lowering{"LSTM", "layout = 1", is_batch_first, transposed_recurrence, "", lower_recurrent_layout},
    Lowering{"GRU", "layout = 1", is_batch_first, transposed_recurrence, "", lower_recurrent_layout},
    Lowering{"RNN", "layout = 1", is_batch_first, transposed_recurrence, "", lower_recurrent_layout},
    Lowering{"LayerNormalization", "the outputs Mean or InvStdDev", returns_statistics,
             "separate layers for mean, standard deviation and result", "a known rank", lower_layer_normalization},
    Lowering{"ScatterND", "reduction", has_reduction,
             "GatherND, the reduction and ScatterND, repeated if an index occurs more than once; if the indices are "
             "computed, comparisons of all positions with all indices, and a MatMul or a reduction",
             "data of fixed size; f32, f16 or bf16; at most 16 M comparisons if the indices are computed",
             lower_scatter_nd},
    Lowering{"ScatterElements", "reduction, or more indices than elements", nullptr,
             "Gather, the reduction and ScatterElements, repeated if an index occurs more than once; if the indices "
             "are computed, comparisons of all positions with all indices, and a MatMul or a reduction",
             "data of fixed size; f32, f16 or bf16; at most 16 M comparisons if the indices are computed",
             lower_scatter_elements},
    Lowering{"TensorScatter", "mode circular, or a cache of another rank than 4", nullptr,
             "GatherElements of the update, and Where", "a cache and an update of fixed length", lower_tensor_scatter},
    Lowering{"SoftmaxCrossEntropyLoss", "every form", nullptr, "LogSoftmax, GatherElements and a sum or mean",
             "f32, f16 or bf16", lower_classification_loss},
    Lowering{"NegativeLogLikelihoodLoss", "every form", nullptr, "GatherElements and a sum or mean", "f32, f16 or bf16",
             lower_classification_loss},
    Lowering{"QLinearConv", "every form", nullptr, "Conv in f32, in parts that are exact, and rounding",
             "at most 64 parts; one part if it has groups", lower_qlinear_conv, computed_in_f32},
    Lowering{"QLinearMatMul", "every form", nullptr, "MatMul in f32, in parts that are exact, and rounding",
             "matrices; at most one scale for each row of the left one and each column of the right one",
             lower_qlinear_matmul, computed_in_f32},
    Lowering{"MatMulInteger", "every form", nullptr, "MatMul in f32, in parts that are exact", "matrices",
             lower_matmul_integer, computed_in_f32},
    Lowering{"ConvInteger", "every form", nullptr, "Conv in f32, in parts that are exact",
             "at most 64 parts; one part if it has groups", lower_conv_integer, computed_in_f32},
    Lowering{"DynamicQuantizeLinear", "every form", nullptr, "the formula of ONNX", "", lower_dynamic_quantize,
             computed_in_f32},
    Lowering{"Cast", "8-bit integers between two layers", nullptr,
             "no Cast, if the values are already rounded and limited to 8 bits",
             "Clip of rounded values before the Cast", lower_cast_of_bytes},
    Lowering{"Cast", "8-bit integers that other nodes move", nullptr, "the Cast before the nodes that move its input",
             "nodes that move or select elements, or take their maximum", lower_cast_of_moved_bytes},
    Lowering{"QuantizeLinear", quantized_forms, is_refused_quantization,
             "Div, Round, Clip and Cast in f32, with the rounding of ONNX", "no blocks", lower_quantize_linear,
             rewrites_quantization},
    Lowering{"DequantizeLinear", quantized_forms, is_refused_quantization,
             "i8 with the zero point 0 where that is the same; a constant; otherwise, together with the QuantizeLinear "
             "before it, Div, Round, Clip and Mul in f32, or i8 with the same range if that is requested",
             "no blocks, unless it dequantizes a constant", lower_dequantize_linear, rewrites_quantization},
    Lowering{"SequenceAt", "every form", nullptr, "the tensor itself, or a slice of the tensor that was split",
             known_sequence, lower_sequence_at, resolves_sequences},
    Lowering{"ConcatFromSequence", "every form", nullptr, "Concat", known_sequence, lower_concat_from_sequence,
             resolves_sequences},
    Lowering{"SequenceLength", "every form", nullptr, "a constant", known_sequence, lower_sequence_length,
             resolves_sequences},
    Lowering{"OptionalHasElement", "every form", nullptr, "a constant", known_optional, lower_optional_has_element,
             resolves_optionals},
    Lowering{"OptionalGetElement", "every form", nullptr, "the element", known_optional, lower_optional_get_element,
             resolves_optionals},
    Lowering{"Loop", "tensors that change their shape, sequences or plugins in the body, or an absent condition",
             nullptr, "one copy of the body for each iteration; otherwise a Loop with the condition true",
             "a constant number of iterations, and at most 1000 nodes in all copies unless another limit is set",
             lower_loop, "graft convert unrolls it if the number of its iterations is a constant"},
    Lowering{"Scan", "no state, or tensors that change their shape, sequences or plugins in the body", nullptr,
             "one copy of the body for each iteration; otherwise a Scan with a state",
             "for copies a fixed length, and at most 1000 nodes in all copies unless another limit is set", lower_scan,
             "graft convert unrolls it if the length of what it scans is fixed"},
    Lowering{"If", "dynamic sizes in a branch of another If, or before a cubic Resize of dynamic height or width",
             is_refused_if, "both branches and Where",
             "branches whose results have the same shapes, without random numbers and bodies; at most as many "
             "operations as the rest of the network, or 1e+08",
             lower_if, "graft convert computes both branches if their results have the same shapes"},
    of_computed_sizes("Slice"),
    of_computed_sizes("Resize"),
    of_computed_sizes("Reshape"),
    of_computed_sizes("Expand"),
    of_computed_sizes("Tile"),
    of_computed_sizes("Pad"),
    of_computed_sizes("ConstantOfShape"),
    of_computed_sizes("Range"),
    Lowering{"AffineGrid", "every form", nullptr, "MatMul of the pixel coordinates with theta", "a constant size",
             lower_affine_grid},
    Lowering{"CenterCropPad", "every form", nullptr, "Slice and Pad", "constant sizes", lower_center_crop_pad},
    Lowering{"SwiGLU", "every form", nullptr, "Sigmoid and Mul", "", lower_swiglu},
    Lowering{"Det", "every form", nullptr, "sums of products", "matrices of at most 4 x 4", lower_det},
    Lowering{"CumProd", "every form", nullptr, "products with the elements 1, 2, 4 ... positions before",
             "an axis of fixed length; f32, f16, bf16, i32 or i64", lower_cum_prod},
    Lowering{"Unique", "every form", nullptr, "comparisons of all elements with each other, and Slice",
             "fixed sizes; at most 16 M comparisons", lower_unique},
    Lowering{"NonZero", "every form", nullptr, "a constant", "a constant input", lower_non_zero},
    Lowering{"Compress", "every form", nullptr, "Gather", "a constant condition", lower_compress},
    Lowering{"MelWeightMatrix", "every form", nullptr, "a constant", "constant inputs", lower_mel_weight_matrix},
    Lowering{"BitShift", "every form", nullptr, "a product with or a quotient by a power of two", "u8, i32 or i64",
             lower_bit_shift},
    Lowering{"BitwiseNot", "every form", nullptr, "a difference", "u8, i8 or i32", lower_bitwise_not},
    Lowering{"BitwiseAnd", "every form", nullptr, "quotients and remainders by powers of two", "u8, i8 or i32",
             lower_bitwise},
    Lowering{"BitwiseOr", "every form", nullptr, "the sum minus the bits set in both", "u8, i8 or i32", lower_bitwise},
    Lowering{"BitwiseXor", "every form", nullptr, "the sum minus twice the bits set in both", "u8, i8 or i32",
             lower_bitwise},
    Lowering{"Mod", "fmod = 0 with floating-point inputs", is_floored_real_mod, "Mod with fmod = 1, corrected", "",
             lower_mod},
    Lowering{"Celu", "f16 or bf16", reads_half, "Celu in f32", "", lower_celu},
    Lowering{"ReduceMax", "boolean inputs", reads_booleans, "ReduceMax of the integers 0 and 1", "constant axes",
             lower_boolean_reduction},
    Lowering{"ReduceMin", "boolean inputs", reads_booleans, "ReduceMin of the integers 0 and 1", "constant axes",
             lower_boolean_reduction},
    Lowering{"DepthToSpace", "boolean inputs", reads_booleans, "DepthToSpace of the numbers 0 and 1", "",
             lower_boolean_permutation},
    Lowering{"SpaceToDepth", "boolean inputs", reads_booleans, "SpaceToDepth of the numbers 0 and 1", "",
             lower_boolean_permutation},
    Lowering{"Einsum", "uppercase letters", has_uppercase_subscripts, "Einsum with other letters", "at most 26 letters",
             lower_einsum},
    Lowering{"NonMaxSuppression", "a limit of boxes above 2^31 - 1, which TensorRT's parser truncates to 32 bits",
             nullptr, "NonMaxSuppression with the limit 2^31 - 1", "a constant limit", lower_box_limit},
    of_onnxruntime("Gelu", "Erf, Add and Mul", "", lower_gelu),
    of_onnxruntime("BiasGelu", "Add, Erf and Mul", "", lower_gelu),
    of_onnxruntime("FastGelu", "Tanh, Add and Mul", "", lower_gelu),
    of_onnxruntime("QuickGelu", "Sigmoid and Mul", "", lower_gelu),
    of_onnxruntime("BiasSplitGelu", "Add, Split, Erf and Mul", "", lower_bias_split_gelu),
    of_onnxruntime("BiasAdd", "Add", "", lower_bias_add),
    of_onnxruntime("FusedMatMul", "MatMul, after Transpose and before Mul", "a known rank of what is transposed",
                   lower_fused_matmul),
    of_onnxruntime("TransposeMatMul", "MatMul, after Transpose and before Mul", "a known rank of what is transposed",
                   lower_fused_matmul),
    of_onnxruntime("FusedGemm", "Gemm and the activation", "", lower_fused_gemm),
    of_onnxruntime("FusedConv", "Conv, Add and the activation", "", lower_fused_conv),
    of_onnxruntime("NhwcConv", "Conv between Transpose", "known channels", lower_fused_conv),
    of_onnxruntime("NhwcFusedConv", "Conv between Transpose, Add and the activation", "known channels",
                   lower_fused_conv),
    of_onnxruntime("SkipLayerNormalization", "Add and LayerNormalization", "no output mean or inv_std_var",
                   lower_skip_layer_normalization),
    of_onnxruntime("SkipSimplifiedLayerNormalization", "Add, and the division by the root of the mean square",
                   "no output mean or inv_std_var", lower_simplified_layer_normalization),
    of_onnxruntime("SimplifiedLayerNormalization", "the division by the root of the mean square", "",
                   lower_simplified_layer_normalization),
    Lowering{"SimplifiedLayerNormalization", "every form", nullptr, "the division by the root of the mean square", "",
             lower_simplified_layer_normalization},
    of_onnxruntime("EmbedLayerNormalization", "Gather, Add and LayerNormalization", "",
                   lower_embed_layer_normalization),
    of_onnxruntime("GroupNorm", "InstanceNormalization of the groups, Mul and Add", "", lower_group_norm),
    of_onnxruntime("SkipGroupNorm", "Add, and InstanceNormalization of the groups", "", lower_group_norm),
    of_onnxruntime("MatMulNBits", "MatMul with dequantized weights", "constant weights of at most 16 M numbers",
                   lower_matmul_n_bits),
    of_onnxruntime("RotaryEmbedding", "Gather, Mul, Add and Concat", "no packed batches", lower_rotary_embedding),
    of_onnxruntime("Attention", "MatMul, Softmax and MatMul", "known sizes of the heads", lower_packed_attention),
    Lowering{.op_type = "MultiHeadAttention",
             .refused = "other inputs than query, key, value and attention_bias, more outputs than one, values of "
                        "another width, mask_filter_value or a scale that is not positive; in TensorRT-RTX before 1.6 "
                        "and in the full TensorRT every form",
             .is_refused = nullptr,
             .form = "MatMul, Softmax and MatMul",
             .needs = "no packed query, key or value; with unidirectional = 1, as many keys as queries",
             .lower = lower_multi_head_attention,
             .domain = onnx::onnxruntime_domain},
    of_onnxruntime("QuantizeLinear", "QuantizeLinear of ONNX, or its formula in f32", "no blocks",
                   lower_quantize_linear),
    of_onnxruntime("DequantizeLinear", "DequantizeLinear of ONNX, or its formula in f32", "no blocks",
                   lower_dequantize_linear),
    of_onnxruntime("QLinearAdd", "Add in f32, and rounding", "", lower_qlinear_pair),
    of_onnxruntime("QLinearMul", "Mul in f32, and rounding", "", lower_qlinear_pair),
    of_onnxruntime("QLinearConcat", "Concat in f32, and rounding", "", lower_qlinear_concat),
    of_onnxruntime("QLinearGlobalAveragePool", "the mean in f32, and rounding", "", lower_qlinear_one),
    of_onnxruntime("QLinearSigmoid", "Sigmoid in f32, and rounding", "", lower_qlinear_one),
    of_onnxruntime("QLinearLeakyRelu", "LeakyRelu in f32, and rounding", "", lower_qlinear_one),
    of_onnxruntime("QLinearSoftmax", "Softmax in f32, and rounding", "", lower_qlinear_one),
    of_onnxruntime("QLinearAveragePool", "AveragePool in f32, and rounding", "", lower_qlinear_one),
    of_onnxruntime("QLinearWhere", "Where in f32, and rounding", "", lower_qlinear_where),
    of_onnxruntime("QLinearConv", "Conv in f32, and rounding", "at most 64 parts; one part if it has groups",
                   lower_qlinear_conv),
    of_onnxruntime("QGemm", "MatMul in f32, in parts that are exact, Add, Mul and rounding", "", lower_qgemm),
    of_onnxruntime("QAttention", "MatMulInteger, MatMul, Softmax and MatMul", "known sizes of the heads",
                   lower_quantized_attention),
    of_onnxruntime("DynamicQuantizeMatMul", "DynamicQuantizeLinear, MatMulInteger and Mul", "",
                   lower_matmul_integer_to_float),
    of_onnxruntime("MatMulIntegerToFloat", "MatMulInteger and Mul", "", lower_matmul_integer_to_float),
    of_onnxruntime("GroupQueryAttention", "MatMul, Softmax and MatMul", "no past_key and past_value",
                   lower_group_query_attention),
    of_plugin("grid_sampler", "GridSample", "", lower_grid_sampler),
    of_plugin("cummax", "comparisons with the elements 1, 2, 4 ... positions before",
              "an axis of fixed length, real numbers", lower_running_extreme),
    of_plugin("cummin", "comparisons with the elements 1, 2, 4 ... positions before",
              "an axis of fixed length, real numbers", lower_running_extreme),
    of_plugin("MMCVRoiAlign", "Split and RoiAlign", "the mode avg", lower_mmcv_roi_align),
    of_plugin("MMCVMultiLevelRoiAlign", "one RoiAlign for each level, and Where", "pool_mode = 1, f32",
              lower_mmcv_multi_level_roi_align),
    of_plugin("GatherTopk", "GatherND", "a known rank", lower_gather_topk),
    of_plugin("TRTInstanceNormalization", "InstanceNormalization", "", lower_plugin_instance_norm),
    of_plugin("MMCVInstanceNormalization", "InstanceNormalization", "", lower_plugin_instance_norm),
    of_plugin("GroupNormalizationPlugin", "InstanceNormalization of the groups, Mul and Add", "a known rank",
              lower_plugin_group_norm),
    of_plugin("CoordConvAC", "Concat with constant coordinates", "images of fixed size", lower_coordinates),
    of_plugin("BatchTilePlugin_TRT", "Expand", "rank 4", lower_batch_tile),
    of_plugin("SpecialSlice_TRT", "Slice", "", lower_special_slice),
    of_plugin("Clip_TRT", "Clip", "f32, f16 or bf16", lower_plugin_clip),
    of_plugin("Reorg_TRT", "Reshape, SpaceToDepth and Reshape", "fixed sizes (the batch may be dynamic)", lower_reorg),
    of_plugin("FlattenConcat_TRT", "Flatten and Concat", "the axis 1", lower_flatten_concat),
    of_plugin("CropAndResize", "GridSample, and 0 outside the image", "images of fixed size",
              lower_plugin_crop_and_resize),
    of_plugin("CropAndResizeDynamic", "GridSample, and 0 outside the image", "images of fixed size",
              lower_plugin_crop_and_resize),
    of_plugin("NMSDynamic_TRT", "decoded boxes, and CombinedNonMaxSuppression", "inputs of rank 4; f32 or f16",
              lower_detection_output),
    of_plugin("NMS_TRT", "decoded boxes, and CombinedNonMaxSuppression", "inputs of rank 4; f32 or f16",
              lower_detection_output),
};

constexpr std::array grid_sample_guards = {
    Lowering{"GridSample", "bilinear sampling", nullptr, "GatherND of the four corners",
             "images of fixed size (the batch may be dynamic)", sample_by_gather},
};

constexpr std::array volume_sampling = {
    Lowering{"GridSample", "an input of rank 5", nullptr, "GatherND of the eight corners",
             "linear sampling, volumes of fixed size (the batch may be dynamic)", sample_volumes_by_gather},
};

/// Returns the replacement as an ONNX function whose inputs are, in this order, the inputs of the node,
/// `replacement.constants` and `replacement.reads`. Throws Error (internal) if the text of the nodes is invalid.
std::shared_ptr<const onnx::FunctionDefinition> body_of(const onnx::Node& node, const Replacement& replacement) {
  auto function = std::make_shared<onnx::FunctionDefinition>();
  function->key = {"", node.op_type, ""};
  onnx::Graph& body = *function->body;
  body.opset_imports[""] = onnx::working_opset;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) body.add_input(fmt::format("x{}", i));
  for (const auto& [name, tensor] : replacement.constants) body.add_input(name);
  for (const auto& [name, value] : replacement.reads) body.add_input(name);
  try {
    for (const auto& [nodes, add] : replacement.first_nodes) {
      onnx::parse_nodes(body, nodes, {}, nullptr);
      add(body);
    }
    onnx::parse_nodes(body, replacement.nodes, {}, nullptr);
  } catch (const Error& error) {
    throw Error(Error::Kind::internal,
                fmt::format("the lowering of {}: {}\n{}", node.op_type, error.what(), replacement.nodes));
  }
  // The replacement may leave out outputs that nothing reads. A function must have them, so they copy another output.
  onnx::Value* computed = nullptr;
  for (std::size_t i = 0; i < node.outputs.size() && computed == nullptr; ++i) {
    computed = body.find_local(fmt::format("y{}", i));
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string name = fmt::format("y{}", i);
    if (body.find_local(name) == nullptr) body.add_node("Identity", {computed}, {name});
    body.add_output(*body.find_local(name));
  }
  onnx::raise_graph_opset(body, std::max(node.graph->opset(), onnx::working_opset), true);
  return function;
}

/// Replaces Casts of integer constants of at most 32 bits by constants of the target type, because TensorRT accepts
/// 8-bit constants only as inputs of DequantizeLinear.
void fold_casts(onnx::Graph& graph, const std::vector<onnx::Node*>& nodes) {
  for (onnx::Node* node : nodes) {
    if (!node->is("Cast") || node->output()->is_output()) continue;
    const auto constant = node->input(0)->constant();
    const auto integers = constant && onnx::bits_of(constant->type) <= 32 ? constant->ints() : std::nullopt;
    if (!integers) continue;
    const std::vector<double> numbers(integers->begin(), integers->end());
    const auto type = static_cast<onnx::ElementType>(node->int_or("to", 0));
    onnx::Value* folded = graph.add_constant(node->output()->name + "/constant",
                                             onnx::TensorData::from_numbers(type, constant->dims, numbers));
    graph.replace_all_uses(*node->output(), *folded);
    graph.remove_node(*node);
  }
}

using Graphs = std::map<std::string, std::unique_ptr<onnx::Graph>>;

/// Removes these attributes of a node, which are graphs, and returns the graphs by name. They still read the values of
/// the graph around the node.
Graphs take_graphs(onnx::Node& node, const std::vector<std::string>& names) {
  Graphs graphs;
  for (const std::string& name : names) {
    const auto found = node.attributes.find(name);
    graphs.emplace(name, std::move(std::get<std::unique_ptr<onnx::Graph>>(found->second.data)));
    node.attributes.erase(found);
  }
  return graphs;
}

/// Replaces each node that has the name of one of the graphs as its operator type by the nodes of that graph, and
/// removes it from `nodes`.
void inline_graphs(std::vector<onnx::Node*>& nodes, Graphs graphs) {
  std::erase_if(nodes, [&](onnx::Node* node) {
    const auto found = graphs.find(node->op_type);
    if (found == graphs.end()) return false;
    const onnx::Graph& body = *found->second;
    node->attributes["body"] = onnx::AttributeData(std::move(found->second));
    NodeNames names(*node->graph);
    BodyCopies copies(*node, body, BodyCopies::Shapes::inferred, names);
    copies.finish(copies.add({node->input(0)}));
    return true;
  });
}

Proposal proposal_for(onnx::Node& node, const Replacement& replacement, std::string reason) {
  Proposal proposal = propose_for(node, replacement.summary, std::move(reason));
  proposal.by_definition = replacement.by_definition;
  proposal.is_proven_by_onnxruntime = replacement.is_proven_by_onnxruntime;
  proposal.changes_result = replacement.changes_result;
  proposal.needs_small_values = replacement.needs_small_values;
  if (!replacement.together_with.empty()) {
    proposal.nodes.insert(proposal.nodes.begin(), replacement.together_with.begin(), replacement.together_with.end());
    proposal.inputs.clear();  // For several nodes the rewriter finds where the region begins.
  }
  std::vector<std::string> reads;
  for (const auto& [name, value] : replacement.reads) reads.push_back(value->name);
  proposal.edit = [y = proposal.outputs.front()->name, body = body_of(node, replacement),
                   constants = replacement.constants, reads = std::move(reads),
                   called = replacement.called_graphs](onnx::Graph& graph) {
    onnx::Node& old = *graph.find(y)->producer;
    const std::string prefix = y + "/";
    for (const auto& [name, tensor] : constants) graph.add_input_to(old, graph.add_constant(prefix + name, tensor));
    for (const std::string& name : reads) {
      onnx::Value* read = graph.find(name);
      if (read == nullptr) throw Error(fmt::format("the region has no tensor '{}'", name));
      graph.add_input_to(old, read);
    }
    // An output that nothing reads becomes a copy of another one, which may have another type and shape.
    for (onnx::Value* output : old.outputs) {
      if (output == nullptr || !output->is_unused()) continue;
      output->type.reset();
      output->shape.reset();
    }
    auto graphs = take_graphs(old, called);
    std::vector<onnx::Node*> nodes = onnx::inline_call(old, *body);
    inline_graphs(nodes, std::move(graphs));
    fold_casts(graph, nodes);
  };
  return proposal;
}

/// Returns a clause with the cost of the new nodes and of a plugin in their place, or an empty string if the nodes are
/// in a sub-graph or cannot be extracted.
std::string cost_text(const onnx::Model& model, const Proposal& proposal) {
  if (proposal.nodes.front()->graph != &model.graph()) return "";
  try {
    onnx::Model region = onnx::extract_nodes(model, {proposal.nodes.begin(), proposal.nodes.end()});
    const Cost plugin = cost_of(region.graph());
    proposal.edit(region.graph());
    region.graph().remove_dead();
    onnx::infer_shapes(region);
    std::string text = fmt::format("costs {}", to_string(cost_of(region.graph())));
    if (plugin.is_known)
      text += fmt::format("; a plugin would write {:.3g} elements", static_cast<double>(plugin.written));
    return text;
  } catch (const Error&) {
    return "";
  }
}

using Names = std::unordered_set<std::string>;

using Reason = std::string (*)(const Lowering&);

std::string refused_form(const Lowering& lowering) {
  return lowering.refused == "every form" ? fmt::format("every form of {}", lowering.op_type)
                                          : fmt::format("{} with {}", lowering.op_type, lowering.refused);
}

std::string reason_of_lowering(const Lowering& lowering) {
  if (lowering.domain == any_domain) {
    return fmt::format("{} is a plugin of another library, and other nodes compute the same", lowering.op_type);
  }
  if (!lowering.domain.empty()) {
    return fmt::format("TensorRT refuses {} of {}::{}", lowering.refused, lowering.domain, lowering.op_type);
  }
  const bool has_plugin = find_operator(lowering.op_type) != nullptr;
  return fmt::format("TensorRT refuses {}{}", refused_form(lowering),
                     has_plugin ? "" : ", and Graft has no plugin for this operator");
}

std::string reason_of_guard(const Lowering& lowering) {
  return fmt::format("some releases of TensorRT are reported to compute {} wrongly, without an error message",
                     refused_form(lowering));
}

/// The maximum number of elements of the constants that all lowerings of a model write in total.
constexpr std::int64_t most_constants_of_a_file = 8 * most_constants;

std::int64_t count_constants(const Replacement& replacement) {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : replacement.constants) count += tensor.element_count();
  return count;
}

/// Returns the replacement of a node by one lowering, or nothing. If the node cannot be lowered, the report lists the
/// reason.
std::optional<Replacement> write_replacement(Rewriter& rewriter, const Lowering& lowering, onnx::Node& node,
                                             ShapesOnDemand& shapes) {
  Site site(node, shapes);
  std::optional<Replacement> replacement;
  try {
    replacement = lowering.lower(site);
    if (replacement && rewriter.lowered_numbers() + count_constants(*replacement) > most_constants_of_a_file) {
      replacement = site.no(
          fmt::format("the constants of all lowered nodes would have more than {} elements", most_constants_of_a_file));
    }
  } catch (const TableTooLarge& too_large) {
    replacement = site.no(too_large.what());
  }
  if (!replacement && !site.why_not().empty()) {
    rewriter.near_miss(fmt::format("{} with layers of TensorRT", node.op_type),
                       {.node = &node, .matched_nodes = 1, .pattern_nodes = 1, .reason = site.why_not()});
  }
  return replacement;
}

/// Returns whether a lowering applies to a node: it is for the node's operator, and Lowering::is_refused is null or
/// returns true for the node.
bool is_for(const Lowering& lowering, const onnx::Node& node) {
  return lowering.is_for(node) && (lowering.is_refused == nullptr || lowering.is_refused(node));
}

/// Applies Replacement::edit, which replaces or completes a node with a body, and records the rewrite. Returns true.
bool edit_node(Rewriter& rewriter, onnx::Node& node, const Replacement& replacement) {
  Rewriter::Subject subject{.nodes = {ref_of(node)}};
  if (!replacement.keeps_node) {
    rewriter.forget_near_misses(node);
    for (const onnx::Graph* body : node.subgraphs()) {
      body->for_each_node([&](const onnx::Node& inner) { subject.nodes.push_back(ref_of(inner)); });
    }
  }
  for (const onnx::Node* fixed : replacement.fixes) subject.nodes.push_back(ref_of(*fixed));
  rewriter.record(std::move(subject), replacement.summary, replacement.reason, replacement.by_definition);
  rewriter.copied_nodes() += replacement.copied_nodes;
  replacement.edit(node);
  return true;
}

/// Replaces a node by the first lowering in `all` that applies, and returns whether it was replaced. If the proof of
/// the replacement fails, adds the name of the node's first output to `rejected`; nodes in `rejected` are not tried
/// again. `reason` computes the reason for the report.
bool lower(Rewriter& rewriter, onnx::Node& node, ShapesOnDemand& shapes, Names& rejected,
           std::span<const Lowering> all = all_lowerings, Reason reason = reason_of_lowering) {
  if (node.used_outputs().empty()) return false;
  for (const Lowering& lowering : all) {
    if (!is_for(lowering, node)) continue;
    const auto replacement = write_replacement(rewriter, lowering, node, shapes);
    if (!replacement) continue;
    if (replacement->edit) return edit_node(rewriter, node, *replacement);
    Proposal proposal = proposal_for(node, *replacement, reason(lowering));
    if (const std::string cost = cost_text(rewriter.model(), proposal); !cost.empty()) proposal.reason += "; " + cost;
    proposal.where_engine_lacks_it = fmt::format(
        "by definition of {}: the CPU engine does not support it; each lowering is tested with results of ONNX's own "
        "tests",
        node.op_type);
    if (lowering.domain == any_domain) {
      proposal.by_definition = fmt::format(
          "by definition of the plugin {}, which no CPU engine has; each lowering is tested with results computed "
          "from the plugin's documentation",
          node.op_type);
    }
    // OpenVINO 2026.4.1 ignores attributes and inputs of several of them.
    if (onnx::is_of_onnxruntime(node)) {
      proposal.is_proven_by_onnxruntime = true;
      proposal.where_engine_lacks_it = fmt::format(
          "by definition of {}, an operator of ONNX Runtime; each lowering is tested with its results", node.op_type);
    }
    std::string y = proposal.outputs.front()->name;
    if (rejected.contains(y)) return false;
    const std::int64_t numbers = count_constants(*replacement);
    if (rewriter.apply(proposal)) {
      rewriter.lowered_numbers() += numbers;
      rewriter.copied_nodes() += replacement->copied_nodes;
      return true;
    }
    rejected.insert(std::move(y));
    return false;
  }
  return false;
}

/// Lowers nodes with bodies, inner nodes before outer nodes, because copying an outer body replaces the nodes in it.
/// Returns whether any node was lowered.
bool lower_nodes_with_bodies(Rewriter& rewriter, Names& rejected) {
  bool lowered = false;
  const std::vector<onnx::Graph*> graphs = rewriter.graphs();
  for (auto graph = graphs.rbegin(); graph != graphs.rend(); ++graph) {
    std::optional<NodeNames> names;  // To collect them for each node took longer than all else in large graphs.
    for (onnx::Node* node : (*graph)->nodes()) {
      if (node->subgraphs().empty() || find_lowering(*node) == nullptr) continue;
      ShapesOnDemand shapes(rewriter, &names);  // Copies of bodies may have graphs and values in the places of others.
      lowered = lower(rewriter, *node, shapes, rejected) || lowered;
    }
  }
  return lowered;
}

}  // namespace

std::span<const Lowering> lowerings() { return all_lowerings; }

const Lowering* find_lowering(const onnx::Node& node) {
  const auto* found = std::find_if(all_lowerings.begin(), all_lowerings.end(),
                                   [&](const Lowering& lowering) { return lowering.is_for(node); });
  return found == all_lowerings.end() ? nullptr : found;
}

bool has_lowered_form(const onnx::Node& node) {
  return std::any_of(all_lowerings.begin(), all_lowerings.end(),
                     [&](const Lowering& lowering) { return is_for(lowering, node); });
}

void lower_to_native(Rewriter& rewriter) {
  if (rewriter.model().graph().opset() < onnx::working_opset) return;
  // One lowering may write nodes for another, and its result may have a shape that was not known before.
  constexpr int most_rounds = 64;
  Names rejected;
  bool lowered_any = false;
  for (int round = 0; round < most_rounds; ++round) {
    if (lower_nodes_with_bodies(rewriter, rejected)) {
      rewriter.end();
      onnx::infer_shapes(rewriter.model());
      lowered_any = true;
      continue;
    }
    std::vector<onnx::Node*> nodes;
    for (onnx::Graph* graph : rewriter.graphs()) {
      for (onnx::Node* node : graph->nodes()) {
        if (node->subgraphs().empty() && has_lowered_form(*node)) nodes.push_back(node);
      }
    }
    if (nodes.empty()) break;
    ShapesOnDemand shapes(rewriter);
    bool lowered = false;
    for (onnx::Node* node : nodes) lowered = lower(rewriter, *node, shapes, rejected) || lowered;
    if (!lowered) break;
    lowered_any = true;
    rewriter.end();
    onnx::infer_shapes(rewriter.model());
  }
  if (!lowered_any) return;
  // Lowerings write the arithmetic of indices as nodes, whose inputs may be constants and fixed sizes, and reshapes
  // next to those of the network.
  fold_constants(rewriter);
  simplify_shapes(rewriter);
}

namespace {

/// Replaces GridSample nodes whose input has rank `rank` (or an unknown rank) by the first of `lowerings` that applies.
/// `reason` returns the reason for the report: the release of TensorRT refuses these nodes or computes them wrongly.
void replace_grid_samples(Rewriter& rewriter, std::size_t rank, std::span<const Lowering> lowerings, Reason reason) {
  if (rewriter.model().graph().opset() < onnx::working_opset) return;
  Names rejected;
  ShapesOnDemand shapes(rewriter);
  bool has_replaced = false;
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (onnx::Node* node : graph->nodes()) {
      if (!node->is("GridSample")) continue;
      const onnx::Value* image = node->input(0);
      if (image != nullptr && image->shape && image->shape->size() != rank) continue;
      has_replaced = lower(rewriter, *node, shapes, rejected, lowerings, reason) || has_replaced;
    }
  }
  if (!has_replaced) return;
  rewriter.end();
  onnx::infer_shapes(rewriter.model());
  fold_constants(rewriter);
}

std::string reason_of_volumes(const Lowering& lowering) {
  return fmt::format("releases of TensorRT before 11.2 refuse {}", refused_form(lowering));
}

}  // namespace

void guard_grid_sample(Rewriter& rewriter) { replace_grid_samples(rewriter, 4, grid_sample_guards, reason_of_guard); }

void lower_volume_sampling(Rewriter& rewriter) {
  replace_grid_samples(rewriter, 5, volume_sampling, reason_of_volumes);
}

}  // namespace graft::passes
