// Lists the operators that Graft recognizes and refuses, with the reason.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "graft/setting.hpp"
#include "import/tensorflow/node_converter.hpp"

namespace graft::tensorflow {
namespace {

struct Reason {
  std::string_view start;  ///< The prefix of the operator's name.
  std::string_view text;   ///< The message; {} stands for the setting that names the outputs.
};

constexpr std::string_view no_text =
    "TensorRT has no operators for strings; process the strings before the network and make numeric tensors its inputs";
constexpr std::string_view is_input_pipeline =
    "it belongs to the input pipeline; freeze only the network after its placeholders";
constexpr std::string_view is_random =
    "its result is random; end the network before it with {}, or export the network for inference";

constexpr std::array reasons = {
    Reason{"As", no_text},
    Reason{"Case", "it selects one of several functions; only If and StatelessIf are supported"},
    Reason{"CudnnRNN", "its weights are in an internal order of cuDNN; export the network for the CPU"},
    Reason{"Decode", is_input_pipeline},
    Reason{"FIFOQueue", is_input_pipeline},
    Reason{"HashTable", no_text},
    Reason{"Iterator", is_input_pipeline},
    Reason{"LookupTable", no_text},
    Reason{"Multinomial", is_random},
    Reason{"NextIteration", "it is inside a loop of TensorFlow 1; select outputs after the loop with {}"},
    Reason{"ParseExample", is_input_pipeline},
    Reason{
        "PyFunc",
        "it is a Python function, of which the file contains only the name; replace it with operators of TensorFlow"},
    Reason{"Queue", is_input_pipeline},
    Reason{"Random", is_random},
    Reason{"ReadFile", is_input_pipeline},
    Reason{"Regex", no_text},
    Reason{"Restore", is_input_pipeline},
    Reason{"Sentencepiece", no_text},
    Reason{"StatelessCase", "it selects one of several functions; only If and StatelessIf are supported"},
    Reason{"StatelessRandom", is_random},
    Reason{"StaticRegex", no_text},
    Reason{"String", no_text},
    Reason{"TensorArray", "it is older than TensorArrayV3, the only supported version"},
    Reason{"TruncatedNormal", is_random},
    Reason{"Wordpiece", no_text},
};

struct Limits {
  std::string_view op;
  std::string_view text;
};

constexpr std::string_view one_diagonal = "the main diagonal only";
constexpr std::string_view fixed_range = "a range that is constant";

constexpr std::array limits = {
    Limits{"Bitcast", "between a quantized type and the integer that holds it"},
    Limits{"BlockLSTM", "weights of known size; a Loop if the cell's state is limited or read step by step"},
    Limits{"BlockLSTMV2", "weights of known size; a Loop if the cell's state is limited or read step by step"},
    Limits{"CombinedNonMaxSuppression", "one box for all classes (q = 1), a known number of classes"},
    Limits{"Complex", "only complex numbers that Real, Imag or ComplexAbs read"},
    Limits{"Conv2DBackpropInput", "padding SAME or VALID"},
    Limits{"Dequantize", "one constant range"},
    Limits{"DynamicPartition", "partitions of one axis"},
    Limits{"DynamicStitch", "constant indices that include every row"},
    Limits{"ExtractImagePatches", "a known number of channels; with SAME, a known size"},
    Limits{"FakeQuantWithMinMaxVars", fixed_range},
    Limits{"FakeQuantWithMinMaxVarsPerChannel", fixed_range},
    Limits{"If", "both branches have the same number of results"},
    Limits{"LinSpace", "a constant count"},
    Limits{"MatrixDiagPartV2", one_diagonal},
    Limits{"MatrixDiagPartV3", one_diagonal},
    Limits{"MatrixDiagV2", one_diagonal},
    Limits{"MatrixDiagV3", one_diagonal},
    Limits{"MatrixSetDiag", "square matrices"},
    Limits{"MatrixSetDiagV2", "the main diagonal of square matrices"},
    Limits{"MatrixSetDiagV3", "the main diagonal of square matrices"},
    Limits{"MaxPoolWithArgmax", "a known size and number of channels"},
    Limits{"Merge", "both inputs have the same shape, unless the condition is constant"},
    Limits{"MirrorPad", "SYMMETRIC with constant paddings; becomes Graft's Padding"},
    Limits{"NonMaxSuppressionV5", "soft_nms_sigma 0"},
    Limits{"OneHot", "a constant depth"},
    Limits{"QuantizeAndDequantizeV2", "round_mode HALF_TO_EVEN; a range for each channel only if it is constant"},
    Limits{"QuantizeAndDequantizeV3", "a range for each channel only if it is constant"},
    Limits{"QuantizeAndDequantizeV4", "round_mode HALF_TO_EVEN; a range for each channel only if it is constant"},
    Limits{"QuantizeV2", "one constant range"},
    Limits{"RFFT", "a known length of at most 4096; becomes a matrix product"},
    Limits{"Roll", "a constant shift, axes of a known size"},
    Limits{"StridedSlice", "constant strides"},
    Limits{"TensorArrayScatterV3", "a tensor that is unstacked from its first element to its last"},
    Limits{"TensorListReserve", "elements of a known shape, unless a loop sets all of them in order"},
    Limits{"Transpose", "a constant permutation"},
    Limits{"UnravelIndex", "constant dimensions"},
};

}  // namespace

std::string_view limits_of(std::string_view op) {
  const auto* const found =
      std::find_if(limits.begin(), limits.end(), [&](const Limits& each) { return each.op == op; });
  return found == limits.end() ? std::string_view() : found->text;
}

std::string reason_against(std::string_view op) {
  const auto* const found =
      std::find_if(reasons.begin(), reasons.end(), [&](const Reason& reason) { return op.starts_with(reason.start); });
  if (found == reasons.end()) return {};
  return fmt::format(fmt::runtime(found->text), setting_name(Setting::kept_outputs));
}

}  // namespace graft::tensorflow
