// How nodes of another library's plugin differ from nodes of the operator that replaces it (DropIn).
#pragma once

#include <string_view>
#include <vector>

namespace graft {

struct PluginForm {
  std::string_view plugin_name;
  /// For each output of the plugin, ONNX nodes that compute it, with the name y0, y1 and so on, from the outputs of the
  /// operator, which have the names of their ports. The text is that of Function::body. An empty list means that the
  /// plugin has the operator's outputs, or the first of them.
  std::vector<std::string_view> outputs;
  /// Whether the plugin has every output of the operator. The parser of TensorRT-RTX requires it of a node.
  bool has_all_outputs = false;
};

/// Returns the form of a plugin that exporters write in domains of their own, so that its name is meant in every
/// domain; null for other plugins, which have the operator's outputs.
[[nodiscard]] const PluginForm* find_plugin_form(std::string_view plugin_name);

/// Returns whether the plugin has outputs that nodes compute from those of the operator.
[[nodiscard]] bool has_own_outputs(std::string_view plugin_name);

/// Returns whether TensorRT can create the operator under the name of the plugin, because both have the same outputs. A
/// node of another plugin has to be replaced before TensorRT's parser reads it.
[[nodiscard]] bool can_stand_in(std::string_view plugin_name);

}  // namespace graft
