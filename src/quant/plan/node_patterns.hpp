// Patterns by which users select nodes: by the node's name, a tensor that it computes, or its operator, with * and ?.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::quant {

/// Selects the nodes of the main graph that stay in f32, and returns a map from their key_of() to the reason. A node is
/// selected if it matches a pattern in `keep`. If `only` is not empty, a node is also selected if it matches no pattern
/// in `only` and `may_change` returns true for it. Throws Error with the setting and the most similar name if a pattern
/// matches no node.
[[nodiscard]] std::map<std::string, std::string, std::less<>> kept_by_patterns(
    const onnx::Model& model, const std::vector<std::string>& keep, const std::vector<std::string>& only,
    const std::function<bool(const onnx::Node&)>& may_change);

}  // namespace graft::quant
