// The rules, as data where they can be. tests/cli compares the list with the real parser.
#include "cli/tensorrt_support.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace graft::cli {
namespace {

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

bool has_output(const Node& node, std::size_t index) {
  const Value* value = node.output(index);
  return value != nullptr && !value->is_unused();
}

std::optional<std::string> refused_top_k(const Node& node) {
  constexpr std::int64_t largest = 3840;
  const Value* k = node.input(1);
  const std::optional<TensorData> constant = k == nullptr ? std::nullopt : k->constant();
  const std::optional<double> value = constant ? constant->scalar() : std::nullopt;
  if (!value || *value <= largest) return std::nullopt;
  return fmt::format("K is {:.0f}; TensorRT's builder takes at most {}", *value, largest);
}

std::optional<std::string> refused_resize(const Node& node) {
  if (node.int_or("antialias", 0) != 0) return "antialias = 1; TensorRT has no antialiased Resize";
  const std::string mode = node.string_or("coordinate_transformation_mode", "half_pixel");
  if (mode == "tf_crop_and_resize" || mode == "half_pixel_symmetric") {
    return fmt::format("coordinate_transformation_mode = {}, which TensorRT's Resize does not have", mode);
  }
  return std::nullopt;
}

std::optional<std::string> refused_pooling(const Node& node) {
  const auto dilations = node.ints("dilations").value_or(std::vector<std::int64_t>());
  if (std::any_of(dilations.begin(), dilations.end(), [](std::int64_t d) { return d != 1; })) {
    return "dilations other than 1, which TensorRT's pooling does not have";
  }
  if (node.is("MaxPool") && has_output(node, 1)) return "its output Indices is used; TensorRT's pooling gives none";
  return std::nullopt;
}

std::optional<std::string> refused_scatter(const Node& node) {
  const std::string reduction = node.string_or("reduction", "none");
  if (reduction == "none") return std::nullopt;
  return fmt::format("reduction = {}; TensorRT scatters without reduction only", reduction);
}

}  // namespace

std::optional<std::string> refusal_of_tensorrt(const Node& node) {
  const std::string& type = node.op_type;
  if (std::find(refused.begin(), refused.end(), type) != refused.end()) return "TensorRT's parser does not know it";
  if (type == "NonMaxSuppression") return "TensorRT's parser takes it, but its builder finds no implementation";
  if (type == "TopK") return refused_top_k(node);
  if (type == "Resize") return refused_resize(node);
  if (type == "MaxPool" || type == "AveragePool") return refused_pooling(node);
  if (type == "ScatterND" || type == "ScatterElements") return refused_scatter(node);
  if (type == "LayerNormalization" && (has_output(node, 1) || has_output(node, 2))) {
    return "its outputs Mean or InvStdDev are used; TensorRT gives the normalised tensor only";
  }
  return std::nullopt;
}

std::string remark_on_native(const Node& node) {
  if (node.is("RoiAlign"))
    return "native, but building it takes a GPU: NVIDIA's ROIAlign plugin calls CUDA when it is made";
  return {};
}

}  // namespace graft::cli
