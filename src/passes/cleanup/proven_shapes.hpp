// The shapes that follow from the inputs of the network.
#pragma once

#include <unordered_map>

#include "onnx/model.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {

/// The shapes of values as inferred from the inputs of the network only. Shapes that the file declares for inner values
/// are ignored, because they keep the old sizes when a user makes the inputs dynamic. The shapes are inferred on a copy
/// of the model and looked up by value name, so they stay valid while the model changes, except for renamed values.
class ProvenShapes {
 public:
  explicit ProvenShapes(Rewriter& rewriter);

  /// Returns the inferred shape of a value, looked up by its name, or null if it cannot be inferred from the inputs of
  /// the network.
  [[nodiscard]] const Shape* of(const onnx::Value& value) const;

 private:
  onnx::Model copy_;
  std::unordered_map<const onnx::Graph*, const onnx::Graph*> copies_;
};

}  // namespace graft::passes
