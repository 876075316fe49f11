// Runs of a model whose arithmetic rounds differently in each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// A tensor that differs by more than its tolerance, and that the noise floor of the reference judges.
struct DoubtfulTensor {
  std::string name;  ///< In the outputs of the draws.
  const onnx::TensorData* reference;
  const onnx::TensorData* candidate;
  Tolerance tolerance;
  Difference* difference;            ///< Is replaced by the difference beyond the floor.
  std::optional<NoiseFloor>* floor;  ///< Is measured; stays empty where the model does not run with noise.
  /// Brings a tensor of a draw into the order of `reference`; empty where the order is the same.
  std::function<onnx::TensorData(const onnx::TensorData&)> arrange = {};
};

/// Runs the reference with noise in one engine, and shows draws that hold the named tensors.
using RunDraws = std::function<void(const std::vector<DoubtfulTensor>& tensors, const LookAtDraw& look)>;

/// Runs a model whose draws hold all of its outputs, as long as both arguments live. Empty where there is no model.
[[nodiscard]] RunDraws draws_of(std::optional<NoisyModel>& noisy, const runtime::TensorMap& inputs);

/// Measures the noise floors of tensors, compares again by these, and lets a second engine confirm the suspect floors
/// that are all that makes a tensor equal. `second` is empty where there is no second engine. Afterwards a tensor may
/// be equal and yet lost in noise (is_lost_in_noise), which is no evidence that it is the same.
void judge_by_noise(const std::vector<DoubtfulTensor>& tensors, const RunDraws& first, const RunDraws& second,
                    std::string_view second_name);

}  // namespace graft::verify
