// What a file declares of its tensors, held against what follows from its inputs and nodes.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// A tensor of the main graph that a node makes, and that cannot have the shape that the file declares.
struct ContradictedShape {
  std::string tensor;
  Shape declared;
  Shape inferred;
};

/// Those of another rank, or with another size where both are numbers. The model is as it was read: nothing has been
/// inferred.
[[nodiscard]] std::vector<ContradictedShape> contradicted_shapes(const Model& model);

/// The same as warnings, of a few tensors by name and of the others by count.
[[nodiscard]] std::vector<std::string> contradicted_shape_warnings(const Model& model);

}  // namespace graft::onnx
