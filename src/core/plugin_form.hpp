// How nodes of another library's plugin differ from nodes of the operator that replaces it (DropIn).
#pragma once

#include <string_view>
#include <vector>

namespace graft {

struct PluginForm {
  std::string_view plugin_name;
  /// ONNX nodes in the syntax of Function::body that compute each output of the plugin from the operator's outputs. The
  /// nodes for output i end with the tensor y<i>; the operator's outputs have the names of their ports. An empty list
  /// means that the plugin has all of the operator's outputs, or the first of them.
  std::vector<std::string_view> outputs;
  /// Whether the plugin has every output of the operator. TensorRT-RTX's parser only accepts a node that has every
  /// output.
  bool has_all_outputs = false;
};

/// Returns the description of a plugin whose outputs may differ from the operator's, or null for all other plugins.
/// Exporters write these plugins in domains of their own, so a node with this name is replaced whatever its domain.
[[nodiscard]] const PluginForm* find_plugin_form(std::string_view plugin_name);

/// Returns whether the plugin's outputs have to be computed from the operator's outputs by additional nodes.
[[nodiscard]] bool has_own_outputs(std::string_view plugin_name);

/// Returns whether TensorRT can create the operator under the name of the plugin, because both have the same outputs. A
/// node of another plugin has to be replaced before TensorRT's parser reads it.
[[nodiscard]] bool can_stand_in(std::string_view plugin_name);

}  // namespace graft
