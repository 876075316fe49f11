// The shapes that follow from the inputs of the network.
#pragma once

#include <unordered_map>

#include "onnx/model.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {

/// What a file merely declares of inner values does not count: it keeps the old sizes when somebody makes the inputs of
/// a model dynamic. Made on a copy, so it stays good while the model is changed, for values that keep their names.
class ProvenShapes {
 public:
  explicit ProvenShapes(Rewriter& rewriter);

  /// Null where it does not follow.
  [[nodiscard]] const Shape* of(const onnx::Value& value) const;

 private:
  onnx::Model copy_;
  std::unordered_map<const onnx::Graph*, const onnx::Graph*> copies_;
};

}  // namespace graft::passes
