// Runs a model several times with arithmetic that is rounded differently each time.
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
#include "verify/judge/noise_floor.hpp"
#include "verify/judge/rounding_noise.hpp"

namespace graft::verify {

/// Receives the outputs of a model without noise (`still`) and in one run with noise (`moved`), by name. The same
/// compiled model computes both, so that a fault of the engine does not count as noise.
using LookAtDraw = std::function<void(const runtime::TensorMap& still, const runtime::TensorMap& moved)>;

/// Runs a model repeatedly with different rounding noise ("noisy runs"). The model is compiled at the first run,
/// because most comparisons need no noise floor.
class NoisyModel {
 public:
  static constexpr std::size_t draws = 8;

  /// `engine` and `model` must outlive this object. `f64_noise` selects the size of the noise in f64 tensors.
  NoisyModel(const runtime::Engine& engine, const onnx::Model& model, runtime::CompileOptions options,
             F64Noise f64_noise = F64Noise::of_engine)
      : engine_(&engine.unchecked()), model_(&model), options_(std::move(options)), f64_noise_(f64_noise) {}

  /// Runs the model with noise as often as `draws` says, and calls `look` with the outputs of each run. Runs in which
  /// the model fails are skipped; if it fails in all of them, `look` is not called.
  void run(const runtime::TensorMap& inputs, const LookAtDraw& look);

 private:
  void compile();
  [[nodiscard]] runtime::TensorMap run_draw(runtime::TensorMap& inputs, std::uint64_t draw) const;

  const runtime::Engine* engine_;
  const onnx::Model* model_;
  runtime::CompileOptions options_;
  F64Noise f64_noise_;
  std::string factors_;          ///< The name of the compiled model's input that holds the factors.
  runtime::NarrowTypes narrow_;  ///< The inputs and outputs that are f32 in the compiled model instead of f16 or bf16.
  std::unique_ptr<runtime::CompiledModel> compiled_;
  bool is_refused_ = false;
};

/// A tensor that exceeds its tolerance, so that the noise floor of the reference has to be measured.
struct DoubtfulTensor {
  std::string name;  ///< The name of the tensor among the outputs of the noisy runs.
  const onnx::TensorData* reference;
  const onnx::TensorData* candidate;
  Tolerance tolerance;
  /// The difference by the tolerance alone. judge_by_noise() replaces it by the difference with the noise floor.
  Difference* difference;
  std::optional<NoiseFloor>* floor;  ///< Set to the measured floor; stays empty if the model does not run with noise.
  /// Transposes a tensor of a noisy run to the order of `reference`. Empty if both have the same order.
  std::function<onnx::TensorData(const onnx::TensorData&)> arrange = {};
  /// Whether the tensor is f64. The first engine measures it with the rounding of f64, and the second engine with that
  /// of f32.
  bool is_of_f64 = false;
};

/// A function that runs the reference several times with noise in one engine. It calls `look` after each of these runs,
/// with maps that contain at least the listed tensors.
using RunDraws = std::function<void(const std::vector<DoubtfulTensor>& tensors, const LookAtDraw& look)>;

/// Returns a function that runs `noisy` on `inputs`, or an empty function if `noisy` is empty. Both arguments must
/// outlive it.
[[nodiscard]] RunDraws draws_of(std::optional<NoisyModel>& noisy, const runtime::TensorMap& inputs);

/// Measures the noise floors of the tensors with `first`, and replaces their differences by those with the floors. If a
/// tensor is then equal only because of a suspect floor, measures that floor with `second` too, which may be empty.
/// Afterwards a tensor may be equal but lost in noise (is_lost_in_noise), which does not show that it is correct.
/// `second_name` is the name of the second engine.
void judge_by_noise(const std::vector<DoubtfulTensor>& tensors, const RunDraws& first, const RunDraws& second,
                    std::string_view second_name);

}  // namespace graft::verify
