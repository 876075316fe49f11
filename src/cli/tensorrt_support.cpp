// The rules, as data where they can be, and what helps. tests/cli compares the list with the real parser.
#include "cli/tensorrt_support.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "graft/error.hpp"
#include "graph/faults.hpp"

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

struct Advice {
  std::string_view type;
  std::string_view advice;
};

constexpr std::string_view for_training = "it is for training: export the network for inference, without its loss";
constexpr std::string_view use_qdq =
    "int8 is QuantizeLinear and DequantizeLinear round float operators in TensorRT: quantise the float model in that "
    "form (QDQ)";
constexpr std::string_view no_sequences = "export the network with tensors in the place of sequences and optionals";
constexpr std::string_view no_texts =
    "turn texts into numbers before the network, and let the network begin with these";
constexpr std::string_view sized_by_data =
    "the size of its output depends on the data: let the network end before it and do the rest after it; or write a "
    "plugin with a size tensor: graft's guide \"add an operator\"";

// What helps more than to write a plugin.
constexpr auto advice_by_type = std::to_array<Advice>({
    {"NonMaxSuppression",
     "let the network end with its boxes and scores, and do it after the network; or a plugin: the full TensorRT's "
     "library has EfficientNMS_TRT, which takes other inputs"},
    {"Unique", sized_by_data},
    {"Compress", sized_by_data},
    {"TopK",
     "ask for at most 3840, where fewer are enough; or split its axis into parts of at most 3840, take TopK of each "
     "and merge them after the network"},
    {"ConvInteger", use_qdq},
    {"DynamicQuantizeLinear", use_qdq},
    {"MatMulInteger", use_qdq},
    {"QLinearConv", use_qdq},
    {"QLinearMatMul", use_qdq},
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

bool handles_text(const Node& node) {
  const auto is_text = [](const Value* value) { return value != nullptr && value->type == ElementType::string; };
  return std::any_of(node.inputs.begin(), node.inputs.end(), is_text) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_text);
}

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
  if (handles_text(node)) return "it handles text (string tensors), which TensorRT does not have";
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

std::string advice_on_refusal(const Node& node) {
  if (handles_text(node)) return std::string(no_texts);
  for (const Advice& each : advice_by_type) {
    if (node.is(each.type)) return std::string(each.advice);
  }
  return "no operator of Graft stands in for it; write one: graft's guide \"add an operator\"";
}

std::optional<RefusalHint> hint_on_refusal(const Node& node) {
  const Value* k = node.is("TopK") ? node.input(1) : nullptr;
  if (k == nullptr || k->constant()) return std::nullopt;
  const std::string maker = k->producer == nullptr ? "an input" : describe(*k->producer);
  return RefusalHint{
      .reason = fmt::format("its K is not a constant: '{}' comes from {}", k->name, maker),
      .advice =
          "make K a constant; or calculate it from sizes alone (Shape, Gather); or let it be an input of the "
          "network, whose values --shapes NAME=1..4..8 tells"};
}

bool fails_by_rule(const Node& node) {
  try {
    return node.metadata.contains(fault_note) || refusal_of_tensorrt(node);
  } catch (const Error&) {  // an attribute of the wrong type
    return true;
  }
}

std::string remark_on_native(const Node& node) {
  if (node.is("RoiAlign"))
    return "native, but building it takes a GPU: NVIDIA's ROIAlign plugin calls CUDA when it is made";
  return {};
}

}  // namespace graft::cli
