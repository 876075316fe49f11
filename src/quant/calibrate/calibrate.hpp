// Counts the values in the tensors of a network over calibration data, with one run for each sample.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graft/parts.hpp"
#include "onnx/model.hpp"
#include "quant/calibrate/calibration_data.hpp"
#include "quant/calibrate/histogram.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

struct CalibrateOptions {
  runtime::OperatorKernels kernels = runtime::OperatorKernels::functions;
  int threads = 0;                   ///< The number of threads; 0 stands for the number of cores.
  std::filesystem::path state = {};  ///< The file that stores the counts between runs; empty for no file.
  /// The time between two writes of the state file, in seconds. If the run is interrupted, the counts since the last
  /// write may be lost.
  double save_seconds = 5;
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
  /// If set, other processes count the samples, each with calibrate_part(), and this function starts them for the
  /// samples that the state file does not contain. If empty, the calling process counts all samples.
  StartParts parts = {};
};

struct Calibration {
  std::int64_t samples = 0;
  std::map<std::string, Histogram, std::less<>> tensors;
};

/// Runs all samples and returns a histogram of the values of each tensor in `tensors` (inputs or inner tensors of the
/// main graph). The state file is written every `save_seconds` and at the end; a later call continues from it with
/// exactly the same result. Throws Error if the state file, or a result of another process (CalibrateOptions::parts),
/// is damaged or belongs to another model, other tensors or other data, and if the results of the other processes lack
/// a sample or contain one twice.
[[nodiscard]] Calibration calibrate(const runtime::Engine& engine, const onnx::Model& model,
                                    const std::vector<std::string>& tensors, const CalibrationData& data,
                                    const CalibrateOptions& options = {});

/// Runs a range of the samples and returns their histograms as bytes, for CalibrateOptions::parts in another process.
/// The sum of the histograms of all ranges equals the result of calibrate(), however the samples are divided. The
/// options' state file is not used.
[[nodiscard]] std::string calibrate_part(const runtime::Engine& engine, const onnx::Model& model,
                                         const std::vector<std::string>& tensors, const CalibrationData& data,
                                         SampleRange range, const CalibrateOptions& options = {});

/// Returns the names of the f32 inputs and of all f32 tensors that the nodes of the main graph compute, in order.
[[nodiscard]] std::vector<std::string> floating_tensors(const onnx::Model& model);

}  // namespace graft::quant
