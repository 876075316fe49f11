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

/// Runs the samples and calls `look` once per sample with the values of these tensors of the main graph (inputs,
/// constants or inner tensors). The values are valid only during the call. Only nodes on which the tensors depend are
/// run.
void observe(const runtime::Engine& engine, const onnx::Model& model, const std::vector<std::string>& tensors,
             const CalibrationData& data, const ObserveOptions& options,
             const std::function<void(const runtime::TensorMap& tensors)>& look);

/// Returns the number of samples that observe() runs with these options.
[[nodiscard]] std::int64_t samples_of(const CalibrationData& data, const ObserveOptions& options);

}  // namespace graft::quant
