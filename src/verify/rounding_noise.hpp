// A model whose arithmetic rounds differently in each run, written in ONNX so that every engine can run it.
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

/// Adds an input of factors to a copy of the model, and multiplies by these factors: the results that operations round,
/// the terms of sums, and the constants of elementwise arithmetic and the biases. Normalizations are split into mean,
/// variance and division first, since these enlarge rounding. Exact results stay: data movement, selections, small
/// integers, and whatever depends on constants and shapes alone. Functions are inlined as `options` says.
///
/// The factors are an input because no engine folds an input, shares it or computes it ahead: the same factors give
/// the same bits. Throws Error where the model cannot be raised to operator set 14.
[[nodiscard]] NoisyGraph add_rounding_noise(const onnx::Model& model, const runtime::CompileOptions& options);

/// Returns the factors of a draw, each 1 plus or minus four epsilons of f32. All factors of draw 0 are 1.
[[nodiscard]] onnx::TensorData noise_factors(std::uint64_t draw);

}  // namespace graft::verify
