// The nodes of a model that become plugins, and the libraries that hold those.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::engine {

/// A node that becomes a plugin of Graft's, or of a library of operators.
struct PluginNode {
  std::string why;
  std::string library;  ///< Empty: Graft's own.
};

/// By the names of the nodes.
using PluginNodes = std::map<std::string, PluginNode>;
[[nodiscard]] PluginNodes find_plugin_nodes(const onnx::Model& model);

/// Returns the libraries that were named, those with operators of the nodes, and Graft's own, where it is needed,
/// unless a copy of it is among them. Throws Error (missing_tool), quoting the model, where that is not there and no
/// library was named.
[[nodiscard]] std::vector<std::string> plugin_libraries(const std::string& model, std::vector<std::string> named,
                                                        const PluginNodes& nodes);

}  // namespace graft::engine
