// Runs of a model whose arithmetic rounds differently in each.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "adapters/openvino/cpu_engine.hpp"
#include "graph/model.hpp"
#include "verify/noise_floor.hpp"

namespace graft {

/// Runs a model with noise. It is compiled when it is first run, for most comparisons need no floor.
class NoisyModel {
 public:
  static constexpr std::size_t draws = 8;

  /// `model` has to outlive it; CpuOptions::noise is set here.
  NoisyModel(const Model& model, CpuOptions options) : model_(&model), options_(std::move(options)) {}

  /// Shows the outputs of each draw. A draw that the model does not run with is left out; with none there is no floor.
  void run(const TensorMap& inputs, const std::function<void(const TensorMap& moved)>& look);

 private:
  const Model* model_;
  CpuOptions options_;
  std::optional<CpuModel> compiled_;
  bool is_refused_ = false;
};

}  // namespace graft
