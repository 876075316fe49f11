// Compares the shapes that a file declares with the shapes that follow from its inputs and nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// A tensor of the main graph that a node computes and whose declared shape contradicts the inferred one.
struct ContradictedShape {
  std::string tensor;
  Shape declared;
  Shape inferred;
};

/// Returns the tensors whose declared and inferred shapes differ in rank, or in a dimension that is known in both
/// shapes. The model must be unchanged since it was read, without inferred shapes.
[[nodiscard]] std::vector<ContradictedShape> contradicted_shapes(const Model& model);

/// Returns a warning for each of the first five tensors of contradicted_shapes(), and one warning with the number of
/// the remaining tensors. Empty if no shapes contradict each other.
[[nodiscard]] std::vector<std::string> contradicted_shape_warnings(const Model& model);

/// Throws Error for an input of unknown rank, naming the setting that defines the sizes of inputs.
[[noreturn]] void fail_without_rank(const Model& model, const Value& input, std::string_view setting);

/// Returns the first input without a default that is a tensor of unknown rank, or null. TensorRT reads such an input as
/// a scalar.
[[nodiscard]] const Value* find_input_without_rank(const Model& model);

/// Throws the Error of fail_without_rank if find_input_without_rank finds an input.
void check_input_ranks(const Model& model, std::string_view setting);

}  // namespace graft::onnx
