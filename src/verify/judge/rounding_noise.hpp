// Builds a model whose arithmetic rounds differently in each run, in plain ONNX, so that every engine can run it.
#pragma once

#include <cstdint>
#include <string>

#include "onnx/model.hpp"
#include "onnx/tensor_data.hpp"
#include "runtime/engine.hpp"
#include "runtime/onnxruntime/widen.hpp"

namespace graft::verify {

/// A copy of a model in which each f32 result that an operation rounds is multiplied by a factor close to 1.
struct NoisyGraph {
  onnx::Model model;
  std::string input;            ///< The input that holds the factors; see noise_factors().
  runtime::NarrowTypes narrow;  ///< Inputs and outputs that were f16 or bf16 and are f32 in the copy.
};

/// Returns a copy of the model with an input of factors, by which it multiplies the results that operations round, the
/// terms of sums, the constants of elementwise arithmetic, and biases. Normalizations are first split into mean,
/// variance and division, which amplify rounding errors. Exact results are not changed: data movement, selections,
/// small integers, and values that depend only on constants and shapes. `options` determines which functions are
/// inlined.
///
/// The factors are an input because engines do not fold, share or precompute inputs: the same factors lead to the same
/// bits. Throws Error if the model cannot be upgraded to opset 14.
[[nodiscard]] NoisyGraph add_rounding_noise(const onnx::Model& model, const runtime::CompileOptions& options);

/// Returns the factors of a draw, each 1 plus or minus four epsilons of f32. All factors of draw 0 are 1.
[[nodiscard]] onnx::TensorData noise_factors(std::uint64_t draw);

}  // namespace graft::verify
