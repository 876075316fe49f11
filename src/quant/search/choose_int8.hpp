// Quantizes a network to int8 or f8: calibrates it, places the type, compares the outputs, and keeps layers in f32
// until the limits are met. Names and comments that mention int8 also apply to f8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graft/parts.hpp"
#include "graft/report/quantize.hpp"
#include "quant/calibrate/calibration_cache.hpp"
#include "quant/calibrate/calibration_data.hpp"
#include "quant/calibrate/thresholds.hpp"
#include "quant/improve/adaround.hpp"
#include "quant/improve/correct_bias.hpp"
#include "quant/improve/equalize.hpp"
#include "quant/improve/smooth.hpp"
#include "quant/plan/int8_cost.hpp"
#include "quant/plan/int8_plan.hpp"
#include "quant/search/choose_types.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/output_figures.hpp"

namespace graft::quant {

using report::Improvements;
using report::Int8Trial;
using report::QuantizedNode;
using report::QuantizedTensor;
using report::Sensitivity;

/// The arguments of calibrate_part() for other processes that count the samples of a calibration. The references are
/// valid only during the call of Int8Options::parts.
struct CalibrationWork {
  const onnx::Model& model;  ///< The network, with its improved weights.
  const std::vector<std::string>& tensors;
  SampleRange samples;
};

struct Int8Options {
  EightBits type = EightBits::int8;
  Improvements improve = {};
  /// The method that computes thresholds. If not set, it is percentile if `percentile` is set, otherwise
  /// usual_method(type).
  std::optional<ThresholdMethod> calibration = {};
  std::optional<double> percentile = {};  ///< See ThresholdOptions::percentile.
  /// Patterns, with * and ?, for the names of nodes and tensors or the operators to keep in f32.
  std::vector<std::string> keep;
  std::vector<std::string> only;  ///< Patterns of all nodes that may become int8; if empty, all may.
  /// Scales that TensorRT computed. If set, nothing is calibrated, and data are only used to compare outputs.
  std::optional<CalibrationCache> cache;
  /// The file that stores the histograms of an interrupted calibration, so that a later run continues it; empty for
  /// none. See CalibrateOptions::state.
  std::filesystem::path state = {};
  /// If set, other processes count the samples of a calibration. The function starts these processes and returns a
  /// function that returns their results one after the other; see CalibrateOptions::parts. If empty, the calling
  /// process counts all samples.
  std::function<NextPart(const CalibrationWork&)> parts = {};
  std::optional<double> limit_db;  ///< The signal-to-noise ratio in dB that each output must reach.
  /// The type, f16 or bf16, for nodes that are not int8; nothing leaves them in f32. Nodes that would lose too much
  /// accuracy stay in f32, and all of them do if the outputs would otherwise miss the limits.
  std::optional<report::Precision> rest;
  NodeRefusal refusal = {};  ///< Refuses nodes in the type `rest`. See TypedOptions::refusal.
  /// The largest allowed decrease of `metric` compared with the f32 network, in the unit of the metric. If not set, the
  /// metric does not limit the search.
  std::optional<double> max_drop;
  /// Returns the user's metric of a model; larger is better. It is called once for the prepared f32 network, and once
  /// for each model that is tried. If not set, the metric is the percentage of rows of the outputs whose largest
  /// element has the same index as in f32.
  std::function<double(const onnx::Model&)> metric = {};
  /// The outputs with the scores of a classifier; if empty, verify::classifier_outputs finds them.
  std::vector<std::string> judge_outputs = {};
  /// The class of each sample of the data. If not empty, and `metric` is not set, the metric is the accuracy of the
  /// only one of `judge_outputs`, in percent of the samples that are judged.
  std::vector<std::int64_t> labels = {};
  std::int64_t judged = 64;  ///< The maximum number of samples for which outputs are compared.
  int threads = 0;
  std::function<void(const std::string& what, std::size_t done, std::size_t total)> progress = {};

  [[nodiscard]] ThresholdOptions thresholds() const;
  void report_progress(const std::string& what, std::size_t done, std::size_t total) const {
    if (progress) progress(what, done, total);
  }
};

struct ChosenInt8 {
  Int8Model placed;
  Int8Plan plan;
  std::vector<QuantizedTensor> tensors;        ///< The quantized tensors, in the order of the network.
  std::vector<verify::OutputFigures> outputs;  ///< The error figures of the resulting model.
  std::vector<verify::OutputFigures> plain;    ///< The error figures with only the requested layers kept in f32.
  std::vector<Sensitivity> sensitivities;      ///< The layers, the worst first; empty without a search.
  std::vector<Int8Trial> trials;
  std::vector<Equalized> equalized;
  std::vector<Smoothed> smoothed;
  std::vector<Rounded> rounded;
  std::vector<CorrectedBias> corrected;
  std::size_t written_trial = 0;  ///< The index of the trial whose model is the result.
  Int8Cost f32_cost;              ///< The estimated cost with all nodes in f32.
  std::vector<std::string> notes;
  /// The scales as a calibration cache for TensorRT 7 to 10. It has no entries for f8, and if no tensor is quantized.
  CalibrationCache cache;
  std::int64_t samples = 0;
  std::int64_t judged = 0;
  std::vector<std::string> metric_outputs;  ///< The outputs whose top-1 agreement is the metric.
  std::optional<double> metric_f32;
  std::optional<double> metric_int8;
  std::optional<ChosenTypes> rest;  ///< The types of nodes that are not int8, if Int8Options::rest is set.
  report::Precision rest_precision = report::Precision::f16;
  bool met = true;

  /// Returns, for the report, the type of each node of the plan and the reason for it.
  [[nodiscard]] std::vector<QuantizedNode> reported_nodes() const;
};

/// Quantizes a network to int8 or f8. Returns the model with its scales, the errors of its outputs, and the models that
/// were tried. If `limit_db` or `max_drop` is set and not met, measures the loss of each layer alone, keeps the layers
/// that lose most in f32 until the limits are met, and changes back to int8 those that need not be in f32. Throws Error
/// for a pattern that matches nothing, a cache without any of the model's tensors, data without samples or without
/// finite numbers, and if the model does not run.
[[nodiscard]] ChosenInt8 choose_int8(const runtime::Engine& engine, const onnx::Model& model,
                                     const CalibrationData& data, const Int8Options& options);

}  // namespace graft::quant
