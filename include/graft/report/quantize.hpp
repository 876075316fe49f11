// The options and the report of `quantize`.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/comparison.hpp"
#include "graft/report/field.hpp"
#include "graft/report/precision.hpp"
#include "graft/report/value_check.hpp"
#include "graft/toolkit/model.hpp"

namespace graft::report {

/// The method that computes the threshold of a tensor's int8 range from the distribution of its values.
enum class ThresholdMethod : std::uint8_t {
  /// The threshold with the smallest Kullback-Leibler divergence, as in TensorRT's entropy calibrator: 2048 bins, 128
  /// levels. If its squared error exceeds four times that of the percentile 99.99, over the values within the
  /// percentile, the percentile is used instead: a few values that occur very often (a hard swish maps large negative
  /// values to them) or a long tail then distort the divergence.
  entropy,
  minmax,      ///< The largest absolute value.
  percentile,  ///< The value that this percentage of the absolute values does not exceed.
  mse,         ///< The threshold with the smallest mean squared error of rounding and saturation.
};
inline constexpr std::array all_threshold_methods{ThresholdMethod::entropy, ThresholdMethod::minmax,
                                                  ThresholdMethod::percentile, ThresholdMethod::mse};

/// Returns "entropy", "minmax", "percentile" or "mse".
[[nodiscard]] inline std::string to_string(ThresholdMethod method) {
  switch (method) {
    case ThresholdMethod::entropy: return "entropy";
    case ThresholdMethod::minmax: return "minmax";
    case ThresholdMethod::percentile: return "percentile";
    case ThresholdMethod::mse: return "mse";
  }
  return "";
}

/// Returns the method of this name, or nothing for another string.
[[nodiscard]] inline std::optional<ThresholdMethod> find_threshold_method(std::string_view name) {
  for (const ThresholdMethod method : all_threshold_methods) {
    if (to_string(method) == name) return method;
  }
  return std::nullopt;
}

/// The methods that change weights and biases to reduce the quantization error.
struct Improvements {
  bool equalize = false;  ///< Whether to run cross-layer equalization, before calibration.
  bool smooth = false;    ///< Whether to run SmoothQuant, before calibration.
  /// Whether to run AdaRound, which rounds each weight up or down so that the layer's output changes least; int8 only.
  bool round = false;
  bool bias = false;  ///< Whether to run bias correction, which removes the mean error of rounding. It runs last.

  [[nodiscard]] bool any() const { return equalize || smooth || round || bias; }
};

/// How the quantized model computes a node.
enum class NodeRole : std::uint8_t {
  /// The node computes in the requested type. In int8 and f8 this is a convolution, a matrix product, a sum or a Graft
  /// operator.
  computes,
  moves,  ///< The node passes int8 or f8 values on unchanged.
  /// The node computes in f32 on the result of an int8 or f8 node before that result is stored, because TensorRT fuses
  /// both into one kernel.
  fused,
  kept,     ///< The node computes in f32, or in the type in Int8Options::rest.
  follows,  ///< The node could compute in f16 or bf16, but computes in f32 because its neighbors do.
  none,     ///< The node has no f32 tensors.
};

/// Why a node is kept in f32.
enum class WhyKept : std::uint8_t {
  form,  ///< The node cannot have the type, or not at its place in the network.
  /// The options request f32, or `quantize` requires it so that an output stays the same; f16 and bf16 only.
  asked,
  overflow,  ///< A tensor that the node reads or computes exceeds the range of the type.
  integers,  ///< A tensor that the node reads or computes contains integers that the type cannot represent exactly.
  sum,       ///< A sum inside the node exceeds the range of the type.
  loss,      ///< If the node had the type, an output would miss the limit on its error.
  kept,      ///< The search or the options keep the node in f32, or a scale is missing; int8 and f8 only.
};

/// Returns "form", "asked", "overflow", "integers", "sum", "loss" or "kept".
[[nodiscard]] inline std::string_view to_string(WhyKept why) {
  switch (why) {
    case WhyKept::form: return "form";
    case WhyKept::asked: return "asked";
    case WhyKept::overflow: return "overflow";
    case WhyKept::integers: return "integers";
    case WhyKept::sum: return "sum";
    case WhyKept::loss: return "loss";
    case WhyKept::kept: return "kept";
  }
  return "";
}

/// The type that a node has in the result.
struct QuantizedNode {
  NodeRef node = {};
  NodeRole role = NodeRole::none;
  std::string type = {};
  std::optional<WhyKept> why = {};
  std::string explanation = {};
  /// Whether the members below are set. In f16 and bf16 they are set if the first output of the node is f32 in the
  /// given model and was measured. In int8 and f8 they are never set.
  bool has_figures = false;
  std::optional<double> lowest = {};
  std::optional<double> highest = {};
  std::int64_t overflow = 0;
  std::int64_t underflow = 0;
  std::int64_t subnormal = 0;
  std::optional<double> rounding_snr_db = {};

  [[nodiscard]] std::string operator_name() const { return node.op; }
  [[nodiscard]] std::string output() const { return node.id; }
  /// Returns why the node is kept in f32; empty for other nodes.
  [[nodiscard]] std::string reason() const { return role == NodeRole::kept ? explanation : ""; }
  /// Returns whether the node is kept in f32 because of its values, and not because of its form or a request.
  [[nodiscard]] bool is_kept_by_numbers() const {
    return role == NodeRole::kept && why != WhyKept::form && why != WhyKept::asked;
  }
  /// Returns the largest absolute value of the first output in the f32 model, or 0.
  [[nodiscard]] double largest() const {
    return lowest && highest ? std::max(std::abs(*lowest), std::abs(*highest)) : 0;
  }

  static constexpr auto fields() {
    return std::tuple{
        field("node", &QuantizedNode::node, "The node."),
        field(nullptr, "operator", &QuantizedNode::operator_name, "The operator of the node."),
        field(nullptr, "output", &QuantizedNode::output, "The first output of the node."),
        field(
            "type", &QuantizedNode::type,
            "'int8', 'f8', 'f16', 'bf16' or 'f32'; 'f64', which is not converted to f16 or bf16; 'fused': computed in "
            "f32 inside the kernel of an int8 or f8 node; empty: the node has no such type."),
        field(nullptr, "why", &QuantizedNode::why,
              "Why the node stays in f32: 'form' (it has no other form at its place), 'asked' (the options request "
              "it), 'overflow', 'integers', 'sum' or 'loss'; in int8 and f8 'form' or 'kept'; null for other nodes."),
        field("reason", nullptr, &QuantizedNode::reason, "Why the node stays in f32; empty for other nodes."),
        field(nullptr, "reason", &QuantizedNode::explanation,
              "Why the node stays in f32, or how it computes in the type."),
        field_if(&QuantizedNode::has_figures, nullptr, "lowest", &QuantizedNode::lowest,
                 "The lowest finite element of the first output in the f32 model."),
        field_if(&QuantizedNode::has_figures, nullptr, "highest", &QuantizedNode::highest,
                 "The highest finite element of the first output in the f32 model."),
        field_if(&QuantizedNode::has_figures, nullptr, "overflow", &QuantizedNode::overflow,
                 "The number of finite elements of this output that become infinite in the type."),
        field_if(&QuantizedNode::has_figures, nullptr, "underflow", &QuantizedNode::underflow,
                 "The number of elements of this output that are not 0 and become 0."),
        field_if(&QuantizedNode::has_figures, nullptr, "subnormal", &QuantizedNode::subnormal,
                 "The number of elements of this output that lose digits because they are small."),
        field_if(&QuantizedNode::has_figures, nullptr, "rounding_snr_db", &QuantizedNode::rounding_snr_db,
                 "The signal to noise ratio of this output in dB if only it is rounded."),
    };
  }
};

/// A constant with a number that the type cannot represent, and the number that replaces it.
struct AdjustedConstant {
  std::string name;
  std::string change;  ///< The change, such as "-1e+09 became -65504".

  static constexpr auto fields() {
    return std::tuple{field("name", &AdjustedConstant::name, "The name of the constant."),
                      field("change", &AdjustedConstant::change, "The change, such as '-1e+09 became -65504'.")};
  }
};

/// The histogram of the absolute values of a tensor.
struct Distribution {
  double bin_width = 0;
  /// The counts of the bins. Bin i counts absolute values from i to i + 1 times the bin width, without zeros.
  std::vector<std::uint64_t> counts = {};
  std::uint64_t zeros = 0;
};

/// A tensor that is rounded to int8 or f8.
struct QuantizedTensor {
  std::string name = {};
  std::string group = {};
  float scale = 0;
  double threshold = 0;
  /// Whether the figures below are known, which requires that the calibration data covered the tensor.
  bool was_observed = false;
  double lowest = 0;
  double highest = 0;
  double saturated = 0;
  std::optional<double> snr_db = {};
  std::optional<Distribution> distribution = {};  ///< The histogram; empty if only zeros were observed.

  static constexpr auto fields() {
    return std::tuple{
        field("name", &QuantizedTensor::name, "The name of the tensor."),
        field("group", &QuantizedTensor::group, "The same string for all tensors that share a scale."),
        field("scale", &QuantizedTensor::scale, "The size of one step of int8, or the value of 1 in f8."),
        field("threshold", &QuantizedTensor::threshold, "The value that becomes 127 steps of int8, or 448 in f8."),
        field_if(&QuantizedTensor::was_observed, nullptr, "lowest", &QuantizedTensor::lowest,
                 "The lowest value in the calibration data, or 0 if none is negative."),
        field_if(&QuantizedTensor::was_observed, nullptr, "highest", &QuantizedTensor::highest,
                 "The highest value in the calibration data, or 0 if none is positive."),
        field_if(&QuantizedTensor::was_observed, nullptr, "saturated", &QuantizedTensor::saturated,
                 "The share of the values beyond the threshold."),
        field_if(&QuantizedTensor::was_observed, nullptr, "rounding_snr_db", &QuantizedTensor::snr_db,
                 "The signal to noise ratio of the rounded tensor in dB, computed from the distribution."),
    };
  }
};

/// The number of changes that each improvement made to the model. A member is empty if the improvement changed nothing,
/// for example because it was not requested.
struct AppliedImprovements {
  std::optional<std::size_t> equalize = {};
  std::optional<std::size_t> smooth = {};
  std::optional<std::size_t> round = {};
  std::optional<std::size_t> bias = {};

  static constexpr auto fields() {
    return std::tuple{
        field_if_any("equalize", &AppliedImprovements::equalize, "The number of pairs of layers."),
        field_if_any("smooth", &AppliedImprovements::smooth, "The number of tensors."),
        field_if_any("round", &AppliedImprovements::round, "The number of layers."),
        field_if_any("bias", &AppliedImprovements::bias, "The number of layers."),
    };
  }
};

/// The error of the outputs if a single layer is in int8 or f8 and all other layers are in f32.
struct Sensitivity {
  NodeRef node;
  double snr_db = 0;

  [[nodiscard]] std::string output() const { return node.id; }

  static constexpr auto fields() {
    return std::tuple{
        field("node", &Sensitivity::node, "The node of the layer."),
        field("output", &Sensitivity::output, "The first output of the node."),
        field("snr_db", &Sensitivity::snr_db, "The signal to noise ratio of the worst output in dB."),
    };
  }
};

/// The estimated cost of one run on a GPU, computed without a GPU. Each dynamic dimension counts as 1.
struct Int8Cost {
  double bytes_moved = 0;
  double int8_multiply_adds = 0;
  double f32_multiply_adds = 0;

  /// Returns the multiply-adds weighted by the speed of their type: tensor cores execute 16 int8 operations in the time
  /// of one f32 operation without tensor cores (A100 data sheet: 624 T against 19.5 T operations per second; with TF32
  /// the ratio is four).
  [[nodiscard]] double weighted_multiply_adds() const {
    constexpr double f32_in_int8 = 16;
    return int8_multiply_adds + f32_in_int8 * f32_multiply_adds;
  }

  static constexpr auto fields() {
    return std::tuple{
        field("bytes_moved", &Int8Cost::bytes_moved,
              "The bytes that layers read and write: tensors and weights, 1 byte for an element in int8 or f8, 4 bytes "
              "in f32."),
        field("int8_multiply_adds", &Int8Cost::int8_multiply_adds, "The multiply-adds in int8 or f8."),
        field("f32_multiply_adds", &Int8Cost::f32_multiply_adds, "The multiply-adds in f32."),
    };
  }
};

/// A candidate model of the search for layers to keep in f32.
struct Int8Trial {
  std::size_t kept = 0;
  double snr_db = 0;
  std::optional<double> metric = {};
  Int8Cost cost = {};

  static constexpr auto fields() {
    return std::tuple{
        field("kept", &Int8Trial::kept, "The number of layers that the search keeps in f32."),
        field("snr_db", &Int8Trial::snr_db, "The signal to noise ratio of the worst output in dB."),
        field("metric", &Int8Trial::metric, "The metric of the model; null without one."),
        inlined(&Int8Trial::cost),
    };
  }
};

/// The result of `quantize`: the model, the type of each node with the reason, and the error of the outputs against
/// f32.
struct QuantizeReport {
  std::string file = {};  ///< The name of the given model: Model::source.
  std::string output = {};
  std::optional<std::filesystem::path> external_data = {};
  toolkit::Model model = {};  ///< The quantized model.
  Precision precision = Precision::f16;
  bool has_data = false;  ///< Whether data were given.
  std::vector<std::string> data_notes = {};
  bool meets_limits = true;
  /// The minimum signal-to-noise ratio of each output in dB. In int8 and f8 it is set only if the options have a limit.
  std::optional<double> limit_db = {};
  std::optional<ValueCheck> check = {};
  std::uint64_t weight_bytes = 0;
  std::uint64_t weight_bytes_before = 0;
  std::vector<QuantizedNode> nodes = {};
  std::vector<std::string> notes = {};
  std::vector<OutputFigures> outputs = {};
  std::vector<OutputFigures> plain_outputs = {};

  // The following members are for f16 and bf16.
  std::vector<std::string> inputs = {};
  std::size_t runs = 0;
  std::size_t tried_models = 0;
  std::size_t casts = 0;
  std::vector<AdjustedConstant> adjusted_constants = {};

  // The following members are for int8 and f8.
  /// The method that chose the thresholds; empty if the scales come from a calibration cache.
  std::optional<ThresholdMethod> method = {};
  /// The percentile of ThresholdMethod::percentile. See Int8Options::percentile.
  double percentile = 0;
  std::int64_t samples = 0;
  std::int64_t judged = 0;
  bool has_own_metric = false;          ///< Whether the options contain a metric of the caller.
  std::optional<double> max_drop = {};  ///< The largest allowed drop of the metric. See Int8Options::max_drop.
  /// The type of the nodes that are not quantized. See Int8Options::rest.
  std::optional<Precision> rest = {};
  /// Whether the nodes that are not quantized have the type `rest`. If false, they are in f32: `rest` is not set, or
  /// the limits are not met with it.
  bool has_rest = false;
  std::vector<std::string> metric_outputs = {};
  bool is_metric_accuracy = false;  ///< Whether the metric is the accuracy of metric_outputs with given classes.
  std::optional<double> metric_f32 = {};
  std::optional<double> metric_int8 = {};
  /// The number of tensors that are rounded to int8 or f8; a tensor counts once, however many nodes read it.
  std::size_t rounded_tensors = 0;
  std::vector<QuantizedTensor> tensors = {};
  AppliedImprovements improvements = {};
  std::vector<Sensitivity> sensitivities = {};
  std::vector<Int8Trial> trials = {};
  std::size_t written_trial = 0;  ///< The index of the trial whose model is the result.
  Int8Cost f32_cost = {};         ///< The estimated cost of the model with every node in f32.
  /// The scales as the content of a calibration cache of TensorRT 7 to 10; empty for f8, and if no tensor is quantized.
  std::string calibration_cache = {};

  [[nodiscard]] bool has_8_bits() const { return report::has_8_bits(precision); }
  [[nodiscard]] bool has_16_bits() const { return !has_8_bits(); }
  /// Returns whether every output meets the limits of the options and, if `verify` had to compare the result, the
  /// comparison did not fail and its verdict is `same`.
  [[nodiscard]] bool met() const { return meets_limits && (!check || check->is_good()); }
  /// Returns the verdict of `verify` on the given model and the result, with the same data, shapes and limit. Empty if
  /// a metric or max_drop judges the result, and for a calibration cache without data.
  [[nodiscard]] std::optional<Verdict> verified() const {
    return check && check->report ? std::optional(check->report->verdict()) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> verified_text() const {
    const std::optional<Verdict> verdict = verified();
    return verdict ? std::optional(to_string(*verdict)) : std::nullopt;
  }
  /// Returns the number of nodes for each type.
  [[nodiscard]] std::map<std::string, std::size_t, std::less<>> counts() const {
    std::map<std::string, std::size_t, std::less<>> counts;
    for (const QuantizedNode& node : nodes) {
      if (!node.type.empty()) ++counts[node.type];
    }
    return counts;
  }
  [[nodiscard]] std::size_t count(NodeRole role) const {
    return static_cast<std::size_t>(std::ranges::count(nodes, role, &QuantizedNode::role));
  }
  [[nodiscard]] std::string data_text() const { return has_data ? "given" : "made up"; }
  [[nodiscard]] std::string method_text() const { return method ? to_string(*method) : "cache"; }

  static constexpr Schema schema{
      "graft.quantize", 1, "The type of each node and why, what was tried, and the quality of outputs against f32.",
      true};
  static constexpr auto fields() {
    constexpr auto in_16_bits = &QuantizeReport::has_16_bits;
    constexpr auto in_8_bits = &QuantizeReport::has_8_bits;
    return std::tuple{
        field(nullptr, "model", &QuantizeReport::file, "The file of the given model."),
        field(nullptr, "output", &QuantizeReport::output, "The file that was written; empty if none was."),
        field(nullptr, "external_data", &QuantizeReport::external_data,
              "The file with the weights, if they are not in the output."),
        field(nullptr, "precision", &QuantizeReport::precision, "'f16', 'bf16', 'int8' or 'f8'."),
        field_if(in_16_bits, nullptr, "data", &QuantizeReport::data_text,
                 "'given', or 'made up' for synthetic inputs; f16 and bf16 only."),
        field("data_notes", &QuantizeReport::data_notes,
              "How the arrays of the data were converted, and arrays that were not used; mostly empty."),
        field_if(in_16_bits, nullptr, "inputs", &QuantizeReport::inputs,
                 "The inputs of the first run, such as 'image: f32[2, 1, 8, 8]'; f16 and bf16 only."),
        field_if(in_16_bits, nullptr, "runs", &QuantizeReport::runs,
                 "The number of runs on which the types are based; f16 and bf16 only."),
        field_if(in_16_bits, nullptr, "limit_db", &QuantizeReport::limit_db,
                 "The minimum signal to noise ratio of each output in dB; f16 and bf16 only."),
        field_if(in_8_bits, nullptr, "method", &QuantizeReport::method_text,
                 "The method that chose the thresholds, or 'cache'; int8 and f8 only."),
        field_if(in_8_bits, nullptr, "samples", &QuantizeReport::samples,
                 "The number of calibration samples; int8 and f8 only."),
        field_if(in_8_bits, nullptr, "judged", &QuantizeReport::judged,
                 "The number of samples for which outputs were compared; int8 and f8 only."),
        field("met", &QuantizeReport::met,
              "Whether every output meets the limits, and graft.verify had nothing to compare or finds the same."),
        field(nullptr, "check", &QuantizeReport::check,
              "The comparison of graft verify on the given model and the result, with the same options; null where a "
              "metric or its maximum drop judges, and for a calibration cache without data."),
        field("verified", nullptr, &QuantizeReport::verified_text,
              "The verdict of graft.verify on the given model and the result; None where a metric or max_drop judges "
              "the result, and for a calibration cache without data."),
        field_if(in_16_bits, nullptr, "trials", &QuantizeReport::tried_models,
                 "f16 and bf16: the number of models that were run."),
        field_if(in_16_bits, nullptr, "casts", &QuantizeReport::casts,
                 "The number of casts that were added; f16 and bf16 only."),
        field_if(in_8_bits, "metric_f32", "metric_f32", &QuantizeReport::metric_f32,
                 "The metric, or the percentage of rows that agree, of the f32 model; None without data."),
        field_if(in_8_bits, "metric_int8", "metric_int8", &QuantizeReport::metric_int8,
                 "The same figure of the result, in int8 or f8."),
        field_if(in_8_bits, "metric_outputs", "metric_outputs", &QuantizeReport::metric_outputs,
                 "The outputs whose top-1 agreement with f32, or accuracy, is the metric; empty for another metric; "
                 "int8 and f8 "
                 "only."),
        field_if(in_8_bits, "metric_is_accuracy", "metric_is_accuracy", &QuantizeReport::is_metric_accuracy,
                 "Whether the metric is the accuracy with given classes, in percent; int8 and f8 only."),
        field(nullptr, "weight_bytes", &QuantizeReport::weight_bytes, "The size of all weights of the result."),
        field(nullptr, "weight_bytes_before", &QuantizeReport::weight_bytes_before,
              "The size of all weights of the given model."),
        field("nodes", &QuantizeReport::nodes, "The type of each node, and why."),
        field("counts", nullptr, &QuantizeReport::counts, "The number of nodes with each type."),
        field_if(in_16_bits, nullptr, "adjusted_constants", &QuantizeReport::adjusted_constants,
                 "Constants with a value that the type cannot represent; f16 and bf16 only."),
        field_if(in_8_bits, nullptr, "tensors", &QuantizeReport::tensors,
                 "The rounded tensors, in the order of the network; int8 and f8 only."),
        field("notes", &QuantizeReport::notes, "Remarks, one sentence each."),
        field("outputs", &QuantizeReport::outputs, "The errors of each output of the result."),
        field(nullptr, "plain_outputs", &QuantizeReport::plain_outputs,
              "The errors of each output of the model in which only those nodes are kept in f32 that have no other "
              "form or were requested."),
        field_if(in_8_bits, nullptr, "improvements", &QuantizeReport::improvements,
                 "The number of places where each improvement changed the network, without improvements that changed "
                 "nothing; int8 and f8 only."),
        field_if(in_8_bits, nullptr, "sensitivities", &QuantizeReport::sensitivities,
                 "Layers that were judged alone, the worst first; empty without a search; int8 and f8 only."),
        field_if(in_8_bits, nullptr, "trials", &QuantizeReport::trials, "int8 and f8: the models that were tried."),
    };
  }
};

}  // namespace graft::report
