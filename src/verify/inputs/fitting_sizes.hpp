// Finds values for integer inputs from which a model computes the sizes of tensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "verify/inputs/inputs.hpp"

namespace graft::verify {

/// Values for the integer inputs from which a model computes sizes.
struct FittingSizes {
  std::map<std::string, std::vector<double>, std::less<>> numbers;
  /// The reason for these values, for reports, such as "synthetic 's' is [2, 3], sizes that fit node 'view' (Reshape)".
  std::string why;
};

/// Returns sets of values to try for the inputs that a Reshape, Expand or Resize reads as sizes, directly or through
/// Cast, except inputs whose range the caller set. Empty if there is no such input.
[[nodiscard]] std::vector<FittingSizes> find_fitting_sizes(const onnx::Model& model, const InputOptions& options);

/// Searches values for the inputs from which the model computes sizes, if these inputs have at most three integers in
/// total. The values that are tried are the sizes of the model's inputs and constants and their divisors. Returns the
/// first few sets of values for which shape inference finds no contradiction; empty if there are none. Inputs whose
/// range the caller set are not searched.
[[nodiscard]] std::vector<FittingSizes> search_fitting_sizes(const onnx::Model& model, const InputOptions& options);

}  // namespace graft::verify
