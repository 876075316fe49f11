// The ranges of a network's tensors over data: one run for each sample, everything counted as it comes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "quant/calibration_data.hpp"
#include "quant/histogram.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

struct CalibrateOptions {
  runtime::OperatorKernels kernels = runtime::OperatorKernels::functions;
  int threads = 0;                   ///< 0: as many as the machine has cores.
  std::filesystem::path state = {};  ///< Where the counts are kept between runs; empty for nowhere.
  double save_seconds = 5;           ///< What is counted in so long may be lost.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

struct Calibration {
  std::int64_t samples = 0;
  std::map<std::string, Histogram, std::less<>> tensors;
};

/// Counts the numbers in these tensors of the main graph, inputs among them, over all samples. A state file, written
/// whole every `save_seconds` and at the end, is taken up where it ends: interrupted or not, the result is the
/// same to the last bit. Throws Error for a state that belongs to another model, other tensors or other data.
[[nodiscard]] Calibration calibrate(const runtime::Engine& engine, const onnx::Model& model,
                                    const std::vector<std::string>& tensors, const CalibrationData& data,
                                    const CalibrateOptions& options = {});

/// The inputs of f32 and all f32 tensors that the main graph's nodes compute, in order.
[[nodiscard]] std::vector<std::string> floating_tensors(const onnx::Model& model);

}  // namespace graft::quant
