// Parts of a model that can be parsed and built by themselves.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "onnx/model.hpp"

namespace graft::inspect {

/// A node in a sub-graph or the function of another one, however deep, that `fits`; null if there is none.
[[nodiscard]] const onnx::Node* find_inside(const onnx::Model& model, const onnx::Node& node,
                                            const std::function<bool(const onnx::Node&)>& fits);

/// Calls `f` with every value of the main graph that a node reads, also in its sub-graphs.
void for_each_read(const onnx::Node& node, const onnx::Graph& main, const std::function<void(const onnx::Value&)>& f);

/// Returns whether a value can be the input of a part: TensorRT has to know its type and rank, and the numbers of what
/// sizes may be computed from.
[[nodiscard]] bool can_be_input(const onnx::Value& value);

/// Returns `nodes` with those that compute what cannot be an input of theirs, in the order of the main
/// graph; nodes in `bad` are not added.
[[nodiscard]] std::vector<const onnx::Node*> with_sizes(const std::vector<const onnx::Node*>& nodes,
                                                        const onnx::Graph& main,
                                                        const std::set<const onnx::Node*>& bad);

/// Gives outputs of unknown type one: TensorRT's parser asks for it, and goes by the one that it finds itself.
void declare_outputs(onnx::Model& model);

}  // namespace graft::inspect
