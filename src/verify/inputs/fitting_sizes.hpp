// Finds values for integer inputs from which a model computes the sizes of tensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "verify/inputs/inputs.hpp"

namespace graft::verify {

/// The values for integer inputs that a model uses as the sizes of a tensor, by the name of the input.
struct FittingSizes {
  std::map<std::string, std::vector<double>, std::less<>> numbers;
  /// The reason for these values, such as "synthetic 's' is [2, 3], sizes that fit node 'view' (Reshape)".
  std::string why;
};

/// Returns sizes for the inputs that a Reshape, Expand or Resize reads as sizes, directly or through Cast, unless the
/// caller set their range.
[[nodiscard]] std::vector<FittingSizes> find_fitting_sizes(const onnx::Model& model, const InputOptions& options);

/// Searches the sizes of the model's inputs and constants, and their divisors, for values of at most three integers of
/// the inputs from which the model computes sizes, such that shape inference finds no contradiction. Inputs whose range
/// the caller set are not searched. Returns the first few results.
[[nodiscard]] std::vector<FittingSizes> search_fitting_sizes(const onnx::Model& model, const InputOptions& options);

}  // namespace graft::verify
