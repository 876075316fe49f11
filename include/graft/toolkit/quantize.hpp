// Converts a model to f16 or bf16, or quantizes it to int8 or f8. The result is an ONNX model for strongly typed
// TensorRT builds: every tensor has its type in the file.
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
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/data.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/tensor.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

using report::Improvements;
using report::OutputFigures;
using report::Precision;
using report::QuantizedNode;
using report::QuantizeReport;
using report::ThresholdMethod;

/// Returns the quality of a model by the application's own measure; a higher value is better. Calls do not overlap.
using Metric = std::function<double(const Model&)>;

/// The work of a calibration that other processes do, or one part of it: counting the values of the tensors in a range
/// of samples.
struct CalibrationWork {
  /// The network whose tensors are counted. Its weights differ from the call's network if Int8Options::improve changes
  /// them.
  Model model = {};
  std::vector<std::string> tensors = {};
  SampleRange samples = {};
  int threads = 0;  ///< The number of threads of a part; 0 stands for the number of cores.
};

/// Options for Precision::int8 and f8. Any option that is set for another precision is an Error.
struct Int8Options {
  /// Maximum number of calibration samples; 0 uses all samples. From a folder with more files, evenly spaced files are
  /// used.
  std::int64_t samples = 0;
  /// The method that chooses thresholds. If not set, the method is percentile in int8, and minmax in f8, whose
  /// steps are finer for small values.
  std::optional<ThresholdMethod> calibration = {};
  /// The percentile for ThresholdMethod::percentile, above 0 and at most 100. Setting it selects this method, whose
  /// default is 99.99.
  std::optional<double> percentile = {};
  /// A calibration cache of TensorRT 7 to 10 whose scales are used, without a method or a percentile. Data are then
  /// optional and only used to compare outputs. int8 only.
  std::filesystem::path cache = {};
  /// A calibration cache of TensorRT 7 to 10 to which the scales of the result are written; if empty, no file is
  /// written. int8 only.
  std::filesystem::path write_cache = {};
  /// A file for the state of the calibration, from which an interrupted calibration continues. If empty, no state is
  /// stored.
  std::filesystem::path state = {};
  /// Starts calibrate_part in other processes and returns the function that waits for their results. If set, these
  /// processes count the samples: the ranges that they receive must cover the samples of the work exactly once. The
  /// result of `quantize` has the same bytes for every division into ranges.
  std::function<NextPart(const CalibrationWork&)> parts = {};
  Improvements improve = {};
  /// The type of nodes that are not int8 or f8, if the limits are still met: f16 or bf16. If not set, these nodes stay
  /// in f32.
  std::optional<Precision> rest = {};
  /// Called once for the f32 model and once for each candidate. If empty, the metric is the percentage of the rows of
  /// `judge_outputs` whose largest element is at the same position as in f32.
  Metric metric = {};
  std::optional<double> max_drop = {};  ///< Maximum decrease of the metric, in its own unit.
  /// The outputs with the scores of a classifier, for the top-1 agreement. If empty, they are the outputs next to a
  /// Softmax or ArgMax or with "logit" or "prob" in their names; without these, the outputs [batch, classes] of last
  /// layers.
  std::vector<std::string> judge_outputs = {};
  /// Maximum number of samples for which outputs are compared; 64 if not set.
  std::optional<std::int64_t> judged = {};
};

struct QuantizeOptions {
  Precision precision = Precision::f16;
  /// Typical inputs of the network, by name; the first axis counts samples. int8 and f8 need a hundred or more; f16 and
  /// bf16 use synthetic inputs where there are none.
  Tensors data = {};
  /// Inputs without a copy, in place of `data`. A view without an owner has to outlive the result.
  TensorViews data_views = {};
  /// Files of inputs, in place of `data`, which are read after all options are checked. In int8 and f8 the files of a
  /// folder are never all in memory.
  DataFiles data_files = {};
  Shapes shapes = {};  ///< Shapes of synthetic inputs, without a dynamic dimension; f16 and bf16 only.
  /// Nodes that stay in f32: patterns with * and ? for names of nodes, tensors or operators.
  std::vector<std::string> keep = {};
  std::vector<std::string> only = {};  ///< The only nodes that may leave f32: patterns as in `keep`.
  bool typed_io = false;               ///< Whether inputs and outputs also have the type; f16 and bf16 only.
  /// Minimum signal-to-noise ratio of each output in dB; nodes stay in f32 until it is met. If not set, it is 40 dB in
  /// f16 and 25 dB in bf16; in int8 and f8 no node stays in f32, and the result is only checked against 20 dB.
  std::optional<double> limit_db = {};
  Int8Options int8 = {};
  std::filesystem::path output = {};        ///< The ONNX file to which the result is written; if empty, no file is.
  CpuEngine engine = CpuEngine::automatic;  ///< The engine for calibration and comparisons.
  /// Called with each of QuantizeReport::data_notes, before the model is quantized.
  std::function<void(const std::string& note)> on_note = {};
  Watch watch = {};
};

/// Returns a typed copy of an f32 model, with Cast nodes for f16 and bf16 and QuantizeLinear and DequantizeLinear for
/// int8 and f8, and for each node its type and the reason. Throws Error for int8 and f8 without data and cache, a
/// pattern in `keep` or `only` that matches nothing, data that do not fit the inputs, and options that the precision
/// does not have; Error (missing_tool) in a build without a CPU engine; exceptions of the metric; Cancelled. A limit
/// that is not met does not throw: `met()` is false. Options are checked before data are read.
[[nodiscard]] GRAFT_API QuantizeReport quantize(const Model& model, const QuantizeOptions& options);

/// Reads an ONNX model, after all options are checked, and quantizes it. Throws the errors of `load` and of `quantize`.
[[nodiscard]] GRAFT_API QuantizeReport quantize(const std::filesystem::path& file, const QuantizeOptions& options);

/// Counts the values of one part of a calibration on behalf of another process, and returns the counts as bytes for
/// Int8Options::parts. `options` must be those of the other process; only the data and the engine matter. The process
/// needs the same version of Graft and the same files. Throws Error if the data lack a sample of the part, and as
/// `quantize` does.
[[nodiscard]] GRAFT_API std::string calibrate_part(const CalibrationWork& part, const QuantizeOptions& options);

/// Writes the scales of an int8 model as a calibration cache of TensorRT 7 to 10, completely or not at all, and returns
/// the number of scales. Throws Error naming the node for a scale that a cache cannot hold, and for a model without
/// scales.
GRAFT_API std::size_t write_calibration_cache(const Model& model, const std::filesystem::path& file);

}  // namespace graft::toolkit
