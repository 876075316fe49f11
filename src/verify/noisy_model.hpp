// Runs of a model whose arithmetic rounds differently in each.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/noise_floor.hpp"
#include "verify/rounding_noise.hpp"

namespace graft::verify {

/// Shows the outputs of the model without noise (`still`) and with the noise of one draw (`moved`). Both are results of
/// the same compiled model, so a fault of the engine is no noise.
using LookAtDraw = std::function<void(const runtime::TensorMap& still, const runtime::TensorMap& moved)>;

/// Runs a model with noise. It is compiled when it is first run, since most comparisons need no floor.
class NoisyModel {
 public:
  static constexpr std::size_t draws = 8;

  /// Engine and model have to outlive it.
  NoisyModel(const runtime::Engine& engine, const onnx::Model& model, runtime::CompileOptions options)
      : engine_(&engine.unchecked()), model_(&model), options_(std::move(options)) {}

  /// Shows the outputs of each draw. Leaves out draws that the model does not run with; where none is left there is no
  /// floor.
  void run(const runtime::TensorMap& inputs, const LookAtDraw& look);

 private:
  void compile();
  [[nodiscard]] runtime::TensorMap run_draw(runtime::TensorMap& inputs, std::uint64_t draw) const;

  const runtime::Engine* engine_;
  const onnx::Model* model_;
  runtime::CompileOptions options_;
  std::string factors_;          ///< The input of the compiled model that holds the factors.
  runtime::NarrowTypes narrow_;  ///< The compiled model's inputs and outputs that are f32 in the place of f16 or bf16.
  std::unique_ptr<runtime::CompiledModel> compiled_;
  bool is_refused_ = false;
};

}  // namespace graft::verify
