// Builds a model whose arithmetic is rounded differently in each run, in plain ONNX, so that every engine can run it.
#pragma once

#include <cstdint>
#include <string>

#include "onnx/model.hpp"
#include "onnx/tensor_data.hpp"
#include "runtime/engine.hpp"
#include "runtime/onnxruntime/widen.hpp"

namespace graft::verify {

/// Selects the size of the noise in f64 tensors.
enum class F64Noise : std::uint8_t {
  /// The rounding error of the type in which the engine computes f64 tensors: f64 in ONNX Runtime, f32 in OpenVINO. It
  /// suffices to compare two models that run in the same engine.
  of_engine,
  /// The rounding error of f32. Use it for comparisons with TensorRT, which computes f64 tensors in f32, and for
  /// comparisons of two engines, of which either may compute in f32.
  of_f32,
};

/// A copy of a model in which each f32 or f64 result that an operation rounds is multiplied by a factor close to 1,
/// which an additional input contains.
struct NoisyGraph {
  onnx::Model model;
  std::string input;            ///< The name of the input for the factors; see noise_factors().
  runtime::NarrowTypes narrow;  ///< Inputs and outputs that were f16 or bf16 and are f32 in the copy.
};

/// Returns a copy of the model that multiplies its inexact values by noise factors, which are an additional input. The
/// values are: results that operations round, terms of sums, constants of elementwise arithmetic, and biases.
/// Normalizations are first split into mean, variance and division, which amplify rounding errors. Exact values get no
/// noise: results of data movement, selections and casts, small integers, and values that depend only on constants and
/// shapes. Each tensor has the noise of its own type; f16 and bf16 are computed in f32. `options` determines which
/// functions are inlined.
///
/// The factors are an input because engines do not fold, share or precompute inputs: equal factors give equal bits.
/// Throws Error if the model cannot be upgraded to opset 14.
[[nodiscard]] NoisyGraph add_rounding_noise(const onnx::Model& model, const runtime::CompileOptions& options,
                                            F64Noise f64_noise = F64Noise::of_engine);

/// Returns whether a value is f64 or computed from f64 tensors, so that F64Noise affects its noise. f64 values that
/// occur only inside a function do not count.
[[nodiscard]] bool depends_on_f64(const onnx::Value& value);

/// Returns the factors of noisy run number `draw`, an f32 tensor for NoisyGraph::input: each is 1 plus or minus four
/// epsilons of f32. All factors of noisy run 0 are 1.
[[nodiscard]] onnx::TensorData noise_factors(std::uint64_t draw);

}  // namespace graft::verify
