// Parts of a model that TensorRT can parse and build separately.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "onnx/model.hpp"

namespace graft::inspect {

/// Returns the first node for which `fits` is true in the sub-graphs of `node` or in the function that it calls, nested
/// ones included, or null if there is no such node.
[[nodiscard]] const onnx::Node* find_inside(const onnx::Model& model, const onnx::Node& node,
                                            const std::function<bool(const onnx::Node&)>& fits);

/// Calls `f` with every value of the main graph that `node` reads, directly or in its sub-graphs.
void for_each_read(const onnx::Node& node, const onnx::Graph& main, const std::function<void(const onnx::Value&)>& f);

/// Returns whether a value can become an input of an extracted part of the model: its type and rank are known, and its
/// elements are floating-point numbers. TensorRT may compute sizes from integers, so it would need their values.
[[nodiscard]] bool can_be_input(const onnx::Value& value);

/// Returns `nodes` and the nodes that compute their inputs, as far as can_be_input() is false for these inputs (sizes,
/// for example), in the order of the main graph. Nodes in `bad` are not added.
[[nodiscard]] std::vector<const onnx::Node*> with_sizes(const std::vector<const onnx::Node*>& nodes,
                                                        const onnx::Graph& main,
                                                        const std::set<const onnx::Node*>& bad);

/// Sets the type of outputs of unknown type to f32, because TensorRT's parser requires a type. The parser replaces it
/// by the type that it infers.
void declare_outputs(onnx::Model& model);

}  // namespace graft::inspect
