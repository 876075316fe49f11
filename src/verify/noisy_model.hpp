// Runs of a model whose arithmetic rounds differently in each.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/noise_floor.hpp"

namespace graft::verify {

/// Runs a model with noise. It is compiled when it is first run, for most comparisons need no floor.
class NoisyModel {
 public:
  static constexpr std::size_t draws = 8;

  /// Both have to outlive it; CompileOptions::noise is set here.
  NoisyModel(const runtime::Engine& engine, const onnx::Model& model, runtime::CompileOptions options)
      : engine_(&engine), model_(&model), options_(std::move(options)) {}

  /// Shows the outputs of each draw. A draw that the model does not run with is left out; with none there is no floor.
  void run(const runtime::TensorMap& inputs, const std::function<void(const runtime::TensorMap& moved)>& look);

 private:
  const runtime::Engine* engine_;
  const onnx::Model* model_;
  runtime::CompileOptions options_;
  std::unique_ptr<runtime::CompiledModel> compiled_;
  bool is_refused_ = false;
};

}  // namespace graft::verify
