// The rules, as data where they can be, and what helps. tests/cli compares the list with the real parser.
#include "inspect/tensorrt_support.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/faults.hpp"

namespace graft::inspect {
namespace {

/// Where all that follows was measured, each operator in a model of its own that was parsed and built.
constexpr std::string_view measured_in = "TensorRT-RTX 1.7.1";

// Those of which OnnxParser.supports_operator says no, of the 203 operators in ONNX 1.23.
constexpr auto refused = std::to_array<std::string_view>({
    "AffineGrid",
    "Bernoulli",
    "BitCast",
    "BitShift",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "CenterCropPad",
    "Col2Im",
    "Compress",
    "ConcatFromSequence",
    "ConvInteger",
    "CumProd",
    "DFT",
    "DeformConv",
    "Det",
    "DynamicQuantizeLinear",
    "ImageDecoder",
    "MatMulInteger",
    "MaxRoiPool",
    "MaxUnpool",
    "MelWeightMatrix",
    "Multinomial",
    "NegativeLogLikelihoodLoss",
    "Optional",
    "OptionalGetElement",
    "OptionalHasElement",
    "QLinearConv",
    "QLinearMatMul",
    "RegexFullMatch",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SequenceMap",
    "SoftmaxCrossEntropyLoss",
    "SplitToSequence",
    "StringConcat",
    "StringNormalizer",
    "StringSplit",
    "SwiGLU",
    "TfIdfVectorizer",
    "Unique",
});

/// supports_operator says yes of these; the parser looks for a plugin that its registry does not have.
constexpr auto without_plugin = std::to_array<std::string_view>({"CausalConvWithState", "LinearAttention", "NonZero"});

/// Of which at least one form was built. Of an operator that is in no list nothing was measured.
constexpr auto built = std::to_array<std::string_view>({
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "And",
    "ArgMax",
    "ArgMin",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "AveragePool",
    "BatchNormalization",
    "BlackmanWindow",
    "Cast",
    "CastLike",
    "Ceil",
    "Celu",
    "Clip",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Conv",
    "ConvTranspose",
    "Cos",
    "Cosh",
    "CumSum",
    "DepthToSpace",
    "DequantizeLinear",
    "Div",
    "Dropout",
    "Einsum",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Expand",
    "EyeLike",
    "Flatten",
    "Floor",
    "GRU",
    "Gather",
    "GatherElements",
    "GatherND",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "Greater",
    "GreaterOrEqual",
    "GridSample",
    "GroupNormalization",
    "HammingWindow",
    "HannWindow",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "Identity",
    "If",
    "InstanceNormalization",
    "IsInf",
    "IsNaN",
    "LRN",
    "LSTM",
    "LayerNormalization",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "LogSoftmax",
    "Loop",
    "LpNormalization",
    "LpPool",
    "MatMul",
    "Max",
    "MaxPool",
    "Mean",
    "MeanVarianceNormalization",
    "Min",
    "Mish",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "OneHot",
    "Or",
    "PRelu",
    "Pad",
    "Pow",
    "QuantizeLinear",
    "RMSNormalization",
    "RNN",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Range",
    "Reciprocal",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Relu",
    "Reshape",
    "Resize",
    "ReverseSequence",
    "RotaryEmbedding",
    "Round",
    "STFT",
    "Scan",
    "Scatter",
    "ScatterElements",
    "ScatterND",
    "Selu",
    "Shape",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Size",
    "Slice",
    "Softmax",
    "Softplus",
    "Softsign",
    "SpaceToDepth",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Sum",
    "Swish",
    "Tan",
    "Tanh",
    "TensorScatter",
    "ThresholdedRelu",
    "Tile",
    "TopK",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Upsample",
    "Where",
    "Xor",
});

struct Advice {
  std::string_view type;
  std::string_view advice;  ///< A format; {0} is the name of Setting::cut, {1} of Setting::explanation.
};

constexpr std::string_view for_training = "it is for training: export the network for inference, without its loss";
constexpr std::string_view use_qdq =
    "graft convert computes it in f32; for int8, quantize the float model in the form that TensorRT has: "
    "QuantizeLinear and DequantizeLinear round float operators (QDQ)";
constexpr std::string_view no_sequences = "export the network with tensors in the place of sequences and optionals";
constexpr std::string_view no_texts =
    "turn strings into numbers before the network, and let the network begin with these";
constexpr std::string_view sized_by_data =
    "the size of its output depends on the data: {0} leaves it and the rest to the host; or write a plugin with a size "
    "tensor: graft's guide \"add an operator\"";

constexpr std::string_view convert_writes_it =
    "graft convert writes it with layers that TensorRT has where its sizes and parameters are constants; {1} says what "
    "stands in the way";

// What helps more than to write a plugin.
constexpr auto advice_by_type = std::to_array<Advice>({
    {"NonMaxSuppression",
     "{0}: the network ends with its boxes and scores, and the host does the rest; or a plugin: the full TensorRT's "
     "library has EfficientNMS_TRT, which takes other inputs"},
    {"Unique", sized_by_data},
    {"Compress", sized_by_data},
    {"NonZero", sized_by_data},
    {"TopK",
     "graft convert takes it in parts of 3840 where K is a constant and the numbers are real; or ask for at most 3840, "
     "where fewer are enough"},
    {"ConvInteger", use_qdq},
    {"DynamicQuantizeLinear", use_qdq},
    {"MatMulInteger", use_qdq},
    {"QLinearConv", use_qdq},
    {"QLinearMatMul", use_qdq},
    {"AffineGrid", convert_writes_it},
    {"AveragePool", convert_writes_it},
    {"BitShift", convert_writes_it},
    {"BitwiseAnd", convert_writes_it},
    {"BitwiseNot", convert_writes_it},
    {"BitwiseOr", convert_writes_it},
    {"BitwiseXor", convert_writes_it},
    {"CenterCropPad", convert_writes_it},
    {"Col2Im", convert_writes_it},
    {"CumProd", convert_writes_it},
    {"DFT", convert_writes_it},
    {"DeformConv", convert_writes_it},
    {"Det", convert_writes_it},
    {"LayerNormalization", convert_writes_it},
    {"LpPool", convert_writes_it},
    {"MaxPool", convert_writes_it},
    {"MaxUnpool", convert_writes_it},
    {"MelWeightMatrix", convert_writes_it},
    {"Resize", convert_writes_it},
    {"ScatterElements", convert_writes_it},
    {"ScatterND", convert_writes_it},
    {"SwiGLU", convert_writes_it},
    {"NegativeLogLikelihoodLoss", for_training},
    {"SoftmaxCrossEntropyLoss", for_training},
    {"ConcatFromSequence", no_sequences},
    {"Optional", no_sequences},
    {"OptionalGetElement", no_sequences},
    {"OptionalHasElement", no_sequences},
    {"SequenceAt", no_sequences},
    {"SequenceConstruct", no_sequences},
    {"SequenceEmpty", no_sequences},
    {"SequenceErase", no_sequences},
    {"SequenceInsert", no_sequences},
    {"SequenceLength", no_sequences},
    {"SequenceMap", no_sequences},
    {"SplitToSequence", no_sequences},
    {"RegexFullMatch", no_texts},
    {"StringConcat", no_texts},
    {"StringNormalizer", no_texts},
    {"StringSplit", no_texts},
    {"TfIdfVectorizer", no_texts},
    {"ImageDecoder", "decode images before the network, and feed it the pixels"},
});

bool handles_text(const onnx::Node& node) {
  const auto is_text = [](const onnx::Value* value) {
    return value != nullptr && value->type == onnx::ElementType::string;
  };
  return std::any_of(node.inputs.begin(), node.inputs.end(), is_text) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_text);
}

bool has_output(const onnx::Node& node, std::size_t index) {
  const onnx::Value* value = node.output(index);
  return value != nullptr && !value->is_unused();
}

std::optional<std::string> refused_top_k(const onnx::Node& node) {
  constexpr std::int64_t largest = 3840;
  const onnx::Value* k = node.input(1);
  const std::optional<onnx::TensorData> constant = k == nullptr ? std::nullopt : k->constant();
  const std::optional<double> value = constant ? constant->scalar() : std::nullopt;
  if (!value || *value <= largest) return std::nullopt;
  return fmt::format("K is {:.0f}; TensorRT's builder takes at most {}", *value, largest);
}

std::optional<std::string> refused_resize(const onnx::Node& node) {
  if (node.int_or("antialias", 0) != 0) return "antialias = 1; TensorRT has no antialiased Resize";
  if (const std::string policy = node.string_or("keep_aspect_ratio_policy", "stretch"); policy != "stretch") {
    return fmt::format("keep_aspect_ratio_policy = {}; TensorRT's Resize has stretch only", policy);
  }
  const std::string mode = node.string_or("coordinate_transformation_mode", "half_pixel");
  if (mode == "tf_crop_and_resize" || mode == "half_pixel_symmetric") {
    return fmt::format("coordinate_transformation_mode = {}, which TensorRT's Resize does not have", mode);
  }
  return std::nullopt;
}

std::optional<std::string> refused_pooling(const onnx::Node& node) {
  const auto dilations = node.ints("dilations").value_or(std::vector<std::int64_t>());
  if (std::any_of(dilations.begin(), dilations.end(), [](std::int64_t d) { return d != 1; })) {
    return "dilations other than 1, which TensorRT's pooling does not have";
  }
  if (const std::int64_t p = node.is("LpPool") ? node.int_or("p", 2) : 2; p != 1 && p != 2) {
    return fmt::format("p = {}; TensorRT has LpPool of p = 1 and 2", p);
  }
  if (node.is("MaxPool") && has_output(node, 1)) return "its output Indices is used; TensorRT's pooling gives none";
  return std::nullopt;
}

std::optional<std::string> refused_scatter(const onnx::Node& node) {
  const std::string reduction = node.string_or("reduction", "none");
  if (reduction == "none") return std::nullopt;
  return fmt::format("reduction = {}; TensorRT scatters without reduction only", reduction);
}

bool is_type_of(const onnx::Value* value, std::initializer_list<onnx::ElementType> types) {
  return value != nullptr && value->type && std::find(types.begin(), types.end(), *value->type) != types.end();
}

/// The first tensor of a node that has one of these types.
const onnx::Value* tensor_of_type(const onnx::Node& node, std::initializer_list<onnx::ElementType> types) {
  for (const std::vector<onnx::Value*>* values : {&node.inputs, &node.outputs}) {
    for (const onnx::Value* value : *values) {
      if (is_type_of(value, types)) return value;
    }
  }
  return nullptr;
}

std::optional<std::string> refused_type(const onnx::Node& node) {
  using enum onnx::ElementType;
  const onnx::Value* value = tensor_of_type(node, {i16, u16, u32, u64, complex64, complex128});
  if (value == nullptr) return std::nullopt;
  return fmt::format("'{}' is {}, which TensorRT does not have", value->name, to_string(*value->type));
}

/// An input that has to be a constant, and is fed to the network.
std::optional<std::string> refused_input(const onnx::Node& node, std::size_t index, std::string_view what) {
  const onnx::Value* value = node.input(index);
  if (value == nullptr || !value->is_input || value->initializer) return std::nullopt;
  return fmt::format("its {} '{}' is an input of the network; TensorRT takes a constant only", what, value->name);
}

std::optional<std::string> refused_quantization(const onnx::Node& node) {
  if (const onnx::Value* value = tensor_of_type(node, {onnx::ElementType::u8})) {
    return fmt::format("'{}' is u8; TensorRT quantizes to signed numbers", value->name);
  }
  const onnx::Value* zero = node.input(2);
  const std::optional<onnx::TensorData> constant = zero == nullptr ? std::nullopt : zero->constant();
  if (!constant) return std::nullopt;
  const auto bytes = constant->bytes.view();
  if (std::all_of(bytes.begin(), bytes.end(), [](auto byte) { return byte == decltype(byte){}; })) return std::nullopt;
  return "its zero point is not zero; TensorRT quantizes symmetrically";
}

/// -1 where it is unknown.
std::int64_t rank_of(const onnx::Value* value) {
  return value == nullptr || !value->shape ? -1 : static_cast<std::int64_t>(value->shape->size());
}

std::optional<std::string> refused_tensor_scatter(const onnx::Node& node) {
  if (const std::string mode = node.string_or("mode", "linear"); mode != "linear") {
    return fmt::format("mode = {}; TensorRT has linear only", mode);
  }
  const std::int64_t rank = rank_of(node.input(0));
  if (rank < 0 || rank == 4) return std::nullopt;
  return fmt::format("its past_cache has rank {}; TensorRT takes 4 only", rank);
}

std::optional<std::string> refused_attention(const onnx::Node& node) {
  for (std::size_t i = 1; i < node.outputs.size(); ++i) {
    if (has_output(node, i)) return "more than its first output is used; TensorRT's Attention gives that one only";
  }
  if (node.float_or("softcap", 0) != 0) return "softcap, which TensorRT's Attention does not have";
  if (node.attribute("softmax_precision") != nullptr) {
    return "softmax_precision, which TensorRT's Attention does not have";
  }
  return std::nullopt;
}

std::optional<std::string> refused_form(const onnx::Node& node) {
  using enum onnx::ElementType;
  const std::string& type = node.op_type;
  if (type == "TopK") return refused_top_k(node);
  if (type == "Resize") return refused_resize(node);
  if (type == "MaxPool" || type == "AveragePool" || type == "LpPool") return refused_pooling(node);
  if (type == "ScatterND" || type == "ScatterElements") return refused_scatter(node);
  if (type == "Attention") return refused_attention(node);
  if (type == "CumSum") return refused_input(node, 1, "axis");
  if ((type == "ReduceMax" || type == "ReduceMin") && is_type_of(node.input(0), {boolean})) {
    return "TensorRT reduces numbers, and not truth values";
  }
  if (type.starts_with("Reduce") || type == "Squeeze" || type == "Unsqueeze") return refused_input(node, 1, "axes");
  if (type == "QuantizeLinear" || type == "DequantizeLinear") return refused_quantization(node);
  if (type == "Range" && is_type_of(node.input(0), {f16, bf16})) return "it counts in f32, i32 and i64 only";
  if (type == "Celu" && is_type_of(node.input(0), {f16, bf16})) return "Celu is taken in f32 only";
  if (type == "TensorScatter") return refused_tensor_scatter(node);
  if (type == "Dropout") {
    const onnx::Value* training = node.input(2);
    const std::optional<onnx::TensorData> constant = training == nullptr ? std::nullopt : training->constant();
    if (constant && constant->scalar().value_or(0) != 0) return "its training_mode is true; TensorRT is for inference";
  }
  if (type == "MatMul" && rank_of(node.input(0)) == 1 && rank_of(node.input(1)) > 2) {
    return "a vector times more than one matrix";
  }
  if (type == "LayerNormalization" && (has_output(node, 1) || has_output(node, 2))) {
    return "its outputs Mean or InvStdDev are used; TensorRT gives the normalized tensor only";
  }
  if (type == "BatchNormalization" && node.int_or("training_mode", 0) != 0) {
    return "training_mode = 1; TensorRT has it for inference only";
  }
  if (type == "Mod" && node.int_or("fmod", 0) == 0 && is_type_of(node.input(0), {f32, f16, bf16})) {
    return "fmod = 0 of floating-point numbers; TensorRT takes integers there";
  }
  return std::nullopt;
}

/// A tensor of fewer than 8 bits an element, or of floating-point numbers of 8.
const onnx::Value* narrow_float_or_integer(const onnx::Node& node) {
  using enum onnx::ElementType;
  return tensor_of_type(node, {f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, u4, i4, f4e2m1, u2, i2, f6e2m3});
}

template <std::size_t N>
bool is_in(const std::array<std::string_view, N>& list, std::string_view type) {
  return std::find(list.begin(), list.end(), type) != list.end();
}

/// What handles 8-bit integers as the bytes that they are, or turns them into numbers.
constexpr auto takes_bytes = std::to_array<std::string_view>({
    "Cast",      "CastLike", "Concat", "Constant", "ConstantOfShape", "DequantizeLinear",
    "Expand",    "Flatten",  "Gather", "Identity", "QuantizeLinear",  "Reshape",
    "Shape",     "Size",     "Slice",  "Split",    "Squeeze",         "Transpose",
    "Unsqueeze",
});

}  // namespace

std::optional<std::string> refusal_of_tensorrt(const onnx::Node& node) {
  const std::string& type = node.op_type;
  const auto measured = [](std::string_view what) { return fmt::format("{} (measured in {})", what, measured_in); };
  if (is_in(refused, type)) return measured("TensorRT's parser does not know it");
  if (is_in(without_plugin, type)) {
    return measured("TensorRT's parser refuses it: it makes a plugin of it that its registry does not have");
  }
  if (handles_text(node)) return "it handles text (string tensors), which TensorRT does not have";
  if (type == "NonMaxSuppression") {
    return measured("TensorRT's parser takes it, but its builder finds no implementation");
  }
  if (const auto reason = refused_form(node)) return measured(*reason);
  if (const auto reason = refused_type(node)) return measured(*reason);
  return std::nullopt;
}

std::optional<std::string> doubt_about(const onnx::Node& node) {
  using enum onnx::ElementType;
  if (node.is("RoiAlign")) {
    return fmt::format(
        "TensorRT makes NVIDIA's plugin ROIAlign of it, which calls CUDA when it is made: without a GPU its parser "
        "refuses it or dies (measured in {}); with one it was not measured",
        measured_in);
  }
  if (node.is("Attention")) {
    return fmt::format("of 34 forms of it that the parser takes, the builder built 5 (measured in {})", measured_in);
  }
  if (!is_in(built, node.op_type)) return fmt::format("it was not measured in {}", measured_in);
  const bool is_quantizing = node.is("QuantizeLinear") || node.is("DequantizeLinear");
  if (const onnx::Value* narrow = is_quantizing ? nullptr : narrow_float_or_integer(node)) {
    return fmt::format("'{}' is {}, which TensorRT takes between QuantizeLinear and DequantizeLinear (measured in {})",
                       narrow->name, to_string(*narrow->type), measured_in);
  }
  const onnx::Value* bytes = is_in(takes_bytes, node.op_type) ? nullptr : tensor_of_type(node, {i8, u8});
  if (bytes == nullptr) return std::nullopt;
  return fmt::format(
      "'{}' is {}; computing with 8-bit integers builds in some cases and fails in others (measured in {})",
      bytes->name, to_string(*bytes->type), measured_in);
}

std::string advice_on_refusal(const onnx::Node& node) {
  if (handles_text(node)) return std::string(no_texts);
  for (const Advice& each : advice_by_type) {
    if (node.is(each.type)) {
      return fmt::format(fmt::runtime(each.advice), setting_name(Setting::cut), setting_name(Setting::explanation));
    }
  }
  return fmt::format(
      "no operator of Graft stands in for it; {} leaves it to the host, or write one: graft's guide "
      "\"add an operator\"",
      setting_name(Setting::cut));
}

std::optional<RefusalHint> hint_on_refusal(const onnx::Node& node) {
  const onnx::Value* k = node.is("TopK") ? node.input(1) : nullptr;
  if (k == nullptr || k->constant()) return std::nullopt;
  const std::string maker = k->producer == nullptr ? "an input" : onnx::describe(*k->producer);
  return RefusalHint{
      .reason = fmt::format("its K is not a constant: '{}' comes from {}", k->name, maker),
      .advice =
          fmt::format("make K a constant; or compute it from sizes alone (Shape, Gather); or let it be an input of the "
                      "network, whose values {} NAME=1..4..8 tells",
                      setting_name(Setting::shape_ranges))};
}

bool fails_by_rule(const onnx::Node& node) {
  try {
    return node.metadata.contains(onnx::fault_note) || refusal_of_tensorrt(node);
  } catch (const Error&) {  // an attribute of the wrong type
    return true;
  }
}

bool is_known_to_fail(const onnx::Node& node) {
  return fails_by_rule(node) && !node.metadata.contains(onnx::fault_note);
}

std::optional<std::string> rule_against(const onnx::Node& node) {
  if (node.metadata.contains(onnx::fault_note)) return std::nullopt;
  try {
    return refusal_of_tensorrt(node);
  } catch (const Error&) {  // an attribute of the wrong type
    return std::nullopt;
  }
}

}  // namespace graft::inspect
