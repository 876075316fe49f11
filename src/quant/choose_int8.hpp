// A network in int8 or f8: calibrated, placed, judged, and layers kept in f32 until it is good enough. Where names and
// comments say int8, the same holds for f8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quant/adaround.hpp"
#include "quant/calibration_cache.hpp"
#include "quant/calibration_data.hpp"
#include "quant/choose_types.hpp"
#include "quant/correct_bias.hpp"
#include "quant/equalize.hpp"
#include "quant/histogram.hpp"
#include "quant/int8_cost.hpp"
#include "quant/int8_plan.hpp"
#include "quant/smooth.hpp"
#include "quant/thresholds.hpp"
#include "runtime/engine.hpp"
#include "verify/output_figures.hpp"

namespace graft::quant {

/// What is done to weights and biases so that int8 loses less.
struct Improvements {
  bool equalize = false;  ///< Before calibration: see equalize.
  bool smooth = false;    ///< Before calibration: see smooth.
  bool round = false;     ///< Of the int8 model: see adaround.
  bool bias = false;      ///< Of the int8 model, the last: see correct_bias.
};

struct Int8Options {
  EightBits type = EightBits::int8;
  Improvements improve = {};
  ThresholdOptions thresholds;
  std::vector<std::string> keep;          ///< Names of nodes, tensors or operators, with * and ?: these stay in f32.
  std::vector<std::string> only;          ///< The same: nothing else becomes int8. Empty: everything may.
  std::optional<CalibrationCache> cache;  ///< Scales from TensorRT; then data only judge.
  std::filesystem::path state = {};       ///< As in CalibrateOptions.
  std::optional<double> limit_db;         ///< Signal to noise ratio that each output has to have.
  std::optional<verify::Precision> rest;  ///< f16 or bf16: what is not int8 computes in it where that does not break.
  NodeRefusal refusal = {};               ///< TypedOptions::refusal for the nodes that compute in `rest`.
  /// How much the metric may fall, in its own unit.
  std::optional<double> max_drop;
  /// Asked once for the f32 network, as prepared, and once for each model that is tried; more is better. Without one:
  /// per cent of the outputs' rows whose largest element is where f32 has it.
  std::function<double(const onnx::Model&)> metric = {};
  std::int64_t judged = 64;  ///< Samples at most that outputs are compared for, evenly spread over the data.
  int threads = 0;
  std::function<void(const std::string& what, std::size_t done, std::size_t total)> progress = {};
};

/// A tensor that is rounded.
struct Int8Tensor {
  std::string name;
  std::string group;  ///< With which other tensors it shares its scale: the same text for all of them.
  float scale = 0;
  double threshold = 0;            ///< What becomes the largest number: 127 steps of int8, 448 of f8.
  std::optional<Histogram> found;  ///< What calibration counted.
  double saturated = 0;            ///< The share of its numbers beyond the threshold.
  std::optional<double> snr_db;    ///< Of rounding alone, by what was counted.
};

/// A layer by itself in int8, all others in f32.
struct Sensitivity {
  NodeRef node;
  double snr_db = 0;  ///< Of the worst output.
};

/// A model that was tried.
struct Int8Trial {
  std::size_t kept = 0;  ///< Layers in f32 beside those that have no int8 form.
  double snr_db = 0;
  std::optional<double> metric;
  Int8Cost cost;
};

struct ChosenInt8 {
  Int8Model placed;
  Int8Plan plan;
  std::vector<Int8Tensor> tensors;             ///< In the order in which the network has them.
  std::vector<verify::OutputFigures> outputs;  ///< Of the model as it was written.
  std::vector<verify::OutputFigures> plain;    ///< With nothing kept but what was asked for.
  std::vector<Sensitivity> sensitivities;      ///< The worst first; empty where there was no search.
  std::vector<Int8Trial> trials;
  std::vector<Equalized> equalized;
  std::vector<Smoothed> smoothed;
  std::vector<Rounded> rounded;
  std::vector<CorrectedBias> corrected;
  std::size_t written_trial = 0;  ///< Whose model was written.
  Int8Cost f32_cost;              ///< With everything kept.
  std::vector<std::string> notes;
  CalibrationCache cache;  ///< The scales, for TensorRT 7 to 10; without entries where nothing is rounded.
  std::int64_t samples = 0;
  std::int64_t judged = 0;
  std::optional<double> metric_f32;
  std::optional<double> metric_int8;
  std::optional<ChosenTypes> rest;  ///< What became of nodes that are not int8, with Int8Options::rest.
  verify::Precision rest_precision = verify::Precision::f16;
  bool met = true;

  /// Whether a node that is not int8 computes in `rest_precision`, and not in f32.
  [[nodiscard]] bool is_in_the_rest(const Int8Node& node) const;
};

/// Where `limit_db` or `max_drop` is not met, layers are judged one by one, those that lose most are kept in f32 until
/// it is, and what turns out not to be needed becomes int8 again. Throws Error for a pattern that matches nothing, a
/// cache without any of the model's tensors, data that hold nothing, and where the model does not run.
[[nodiscard]] ChosenInt8 choose_int8(const runtime::Engine& engine, const onnx::Model& model,
                                     const CalibrationData& data, const Int8Options& options);

}  // namespace graft::quant
