// Passes tensors of a network to the caller while samples are run, one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "quant/calibrate/calibration_data.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

struct ObserveOptions {
  runtime::OperatorKernels kernels = runtime::OperatorKernels::functions;
  int threads = 0;           ///< The number of threads; 0 stands for the number of cores.
  std::int64_t samples = 0;  ///< The number of samples, evenly spread over the data; 0 stands for all.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

/// Runs the samples and calls `look` for each of them with these tensors of the main graph, which may be inputs and
/// constants. The tensors are valid only during the call. Only nodes that the tensors depend on are run.
void observe(const runtime::Engine& engine, const onnx::Model& model, const std::vector<std::string>& tensors,
             const CalibrationData& data, const ObserveOptions& options,
             const std::function<void(const runtime::TensorMap& tensors)>& look);

/// Returns the number of samples that observe runs.
[[nodiscard]] std::int64_t samples_of(const CalibrationData& data, const ObserveOptions& options);

}  // namespace graft::quant
