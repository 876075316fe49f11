// Quantizes a network to int8 or f8: calibrates it, places the type, compares the outputs, and keeps layers in f32
// until the limits are met. Names and comments that say int8 also mean f8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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
using report::QuantizedTensor;
using report::Sensitivity;

struct Int8Options {
  EightBits type = EightBits::int8;
  Improvements improve = {};
  ThresholdOptions thresholds;
  std::vector<std::string> keep;          ///< Names of nodes, tensors or operators, with * and ?, that stay in f32.
  std::vector<std::string> only;          ///< Names of all that may become int8. Empty: everything may.
  std::optional<CalibrationCache> cache;  ///< Scales from TensorRT; data then only serve to compare outputs.
  std::filesystem::path state = {};       ///< See CalibrateOptions.
  std::optional<double> limit_db;         ///< The signal-to-noise ratio that each output must have.
  /// f16 or bf16: the type of nodes that are not int8, where that does not break the network.
  std::optional<verify::Precision> rest;
  NodeRefusal refusal = {};  ///< See TypedOptions::refusal; for nodes in the type of `rest`.
  /// The most that the metric may fall, in its own unit.
  std::optional<double> max_drop;
  /// Called once for the f32 network, as prepared, and once for each model that is tried; more is better. Without a
  /// metric, the percentage of the outputs' rows whose largest element is at the same index as in f32 is used.
  std::function<double(const onnx::Model&)> metric = {};
  std::int64_t judged = 64;  ///< Maximum number of samples for which outputs are compared.
  int threads = 0;
  std::function<void(const std::string& what, std::size_t done, std::size_t total)> progress = {};

  void report_progress(const std::string& what, std::size_t done, std::size_t total) const {
    if (progress) progress(what, done, total);
  }
};

struct ChosenInt8 {
  Int8Model placed;
  Int8Plan plan;
  std::vector<QuantizedTensor> tensors;        ///< The rounded tensors, in the order of the network.
  std::vector<verify::OutputFigures> outputs;  ///< Figures of the model that was written.
  std::vector<verify::OutputFigures> plain;    ///< Figures with only the requested layers kept.
  std::vector<Sensitivity> sensitivities;      ///< The worst first; empty without a search.
  std::vector<Int8Trial> trials;
  std::vector<Equalized> equalized;
  std::vector<Smoothed> smoothed;
  std::vector<Rounded> rounded;
  std::vector<CorrectedBias> corrected;
  std::size_t written_trial = 0;  ///< The index of the trial whose model was written.
  Int8Cost f32_cost;              ///< The cost with everything kept in f32.
  std::vector<std::string> notes;
  CalibrationCache cache;  ///< The scales, for TensorRT 7 to 10; empty for f8 or if nothing is rounded.
  std::int64_t samples = 0;
  std::int64_t judged = 0;
  std::optional<double> metric_f32;
  std::optional<double> metric_int8;
  std::optional<ChosenTypes> rest;  ///< The types of nodes that are not int8, with Int8Options::rest.
  verify::Precision rest_precision = verify::Precision::f16;
  bool met = true;

  /// Returns whether a node that is not int8 computes in `rest_precision`, and not in f32.
  [[nodiscard]] bool is_in_the_rest(const Int8Node& node) const;
};

/// Quantizes a network. If `limit_db` or `max_drop` is not met, layers are judged one by one, the layers that lose most
/// are kept in f32 until the limits are met, and layers that turn out not to be needed in f32 become int8 again. Throws
/// Error for a pattern that matches nothing, a cache without any of the model's tensors, data without samples or
/// without finite numbers, and if the model does not run.
[[nodiscard]] ChosenInt8 choose_int8(const runtime::Engine& engine, const onnx::Model& model,
                                     const CalibrationData& data, const Int8Options& options);

}  // namespace graft::quant
