// Looks at tensors of a network while samples go through it, one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "quant/calibration_data.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

struct ObserveOptions {
  runtime::OperatorKernels kernels = runtime::OperatorKernels::functions;
  int threads = 0;           ///< 0: as many as the machine has cores.
  std::int64_t samples = 0;  ///< So many, evenly spread over the data; 0: all.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

/// `look` gets these tensors of the main graph, inputs and constants among them, for each sample; they are gone when it
/// returns. Only what they need is run.
void observe(const runtime::Engine& engine, const onnx::Model& model, const std::vector<std::string>& tensors,
             const CalibrationData& data, const ObserveOptions& options,
             const std::function<void(const runtime::TensorMap& tensors)>& look);

/// How many samples that are.
[[nodiscard]] std::int64_t samples_of(const CalibrationData& data, const ObserveOptions& options);

}  // namespace graft::quant
