// Finds the nodes of a model that become plugins, and the libraries that contain these plugins.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::engine {

/// Why a node becomes a plugin, and the library that contains the plugin.
struct PluginNode {
  /// The reason why the node becomes a plugin.
  std::string why;
  std::string library;  ///< The operator library; empty for Graft's own plugin library.
};

/// The nodes that become plugins, by node name.
using PluginNodes = std::map<std::string, PluginNode>;
[[nodiscard]] PluginNodes find_plugin_nodes(const onnx::Model& model);

/// Returns the plugin libraries to load: `named`, the operator libraries of `nodes`, and Graft's own library if a node
/// needs it and `named` does not contain a copy. Throws Error (missing_tool) if Graft's own library is needed but does
/// not exist and `named` is empty; `model` is the model's name in the message. The message suggests a build without
/// plugins if `find_need`, which returns the name of a node that only a plugin can run, returns an empty string.
[[nodiscard]] std::vector<std::string> plugin_libraries(const std::string& model, std::vector<std::string> named,
                                                        const PluginNodes& nodes,
                                                        const std::function<std::string()>& find_need);

}  // namespace graft::engine
