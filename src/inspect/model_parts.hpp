// Parts of a model that TensorRT can parse and build separately.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "onnx/model.hpp"

namespace graft::inspect {

/// Returns the first node for which `fits` is true in the sub-graphs of `node` or in the function that it calls, also
/// in nested ones, or null.
[[nodiscard]] const onnx::Node* find_inside(const onnx::Model& model, const onnx::Node& node,
                                            const std::function<bool(const onnx::Node&)>& fits);

/// Calls `f` with every value of the main graph that `node` reads, directly or in its sub-graphs.
void for_each_read(const onnx::Node& node, const onnx::Graph& main, const std::function<void(const onnx::Value&)>& f);

/// Returns whether a value can be the input of a part: its type and rank are known, and its elements are floating-point
/// numbers. TensorRT may compute sizes from other types, so it would need their values.
[[nodiscard]] bool can_be_input(const onnx::Value& value);

/// Returns `nodes`, and the nodes that compute values for them which cannot be inputs of a part, in the order of the
/// main graph. Nodes in `bad` are not added.
[[nodiscard]] std::vector<const onnx::Node*> with_sizes(const std::vector<const onnx::Node*>& nodes,
                                                        const onnx::Graph& main,
                                                        const std::set<const onnx::Node*>& bad);

/// Declares outputs of unknown type as f32: TensorRT's parser requires a type, and replaces it with the inferred one.
void declare_outputs(onnx::Model& model);

}  // namespace graft::inspect
