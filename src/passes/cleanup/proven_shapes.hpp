// The shapes that follow from the inputs of the network.
#pragma once

#include <unordered_map>

#include "onnx/model.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {

/// The shapes that follow from the inputs of the network. Shapes that a file declares for inner values are ignored:
/// they keep the old sizes when a user makes the inputs of a model dynamic. The shapes are inferred on a copy, so
/// that they stay valid while the model changes, for values that keep their names.
class ProvenShapes {
 public:
  explicit ProvenShapes(Rewriter& rewriter);

  /// Returns the shape of a value, or null if the shape does not follow from the inputs.
  [[nodiscard]] const Shape* of(const onnx::Value& value) const;

 private:
  onnx::Model copy_;
  std::unordered_map<const onnx::Graph*, const onnx::Graph*> copies_;
};

}  // namespace graft::passes
