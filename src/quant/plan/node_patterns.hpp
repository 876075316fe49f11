// Patterns by which users select nodes: by the node's name, a tensor that it computes, or its operator, with * and ?.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::quant {

/// Returns the nodes of the main graph to keep in f32, as a map from their key_of to the reason: the nodes that match a
/// pattern in `keep` and, unless `only` is empty, the nodes that match no pattern in `only` and for which `may_change`
/// returns true. Throws Error with the setting and the most similar name if a pattern matches no node.
[[nodiscard]] std::map<std::string, std::string, std::less<>> kept_by_patterns(
    const onnx::Model& model, const std::vector<std::string>& keep, const std::vector<std::string>& only,
    const std::function<bool(const onnx::Node&)>& may_change);

}  // namespace graft::quant
