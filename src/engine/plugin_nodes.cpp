// Finds the operator of each plugin node, and the library that defines the operator.
#include "engine/plugin_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "engine/plugin_library.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "graft/setting.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/plugin_reason.hpp"

namespace graft::engine {

PluginNodes find_plugin_nodes(const onnx::Model& model) {
  PluginNodes found;
  model.graph().for_each_node([&](const onnx::Node& node) {
    const onnx::OperatorMatch match = find_operator_for(node);
    if (!match) return;
    const OperatorLibrary* library = library_of(*match.type);
    found.emplace(node.name, PluginNode{reason_for_plugin(node), library == nullptr ? "" : library->file});
  });
  return found;
}

std::vector<std::string> plugin_libraries(const std::string& model, std::vector<std::string> named,
                                          const PluginNodes& nodes, const std::function<std::string()>& find_need) {
  std::vector<std::string> libraries = std::move(named);
  const bool has_named = !libraries.empty();
  bool needs_own = false;
  for (const auto& entry : nodes) {
    const PluginNode& node = entry.second;
    if (node.library.empty()) {
      needs_own = true;
      continue;
    }
    const bool is_known = std::any_of(libraries.begin(), libraries.end(), [&](const std::string& library) {
      std::error_code ignored;
      return std::filesystem::equivalent(library, node.library, ignored);
    });
    if (!is_known) libraries.push_back(node.library);
  }
  const PluginLibrary own = own_plugin_library();
  if (!needs_own || has_own_plugin_library(libraries)) return libraries;
  if (own.exists) {
    libraries.push_back(own.path.string());
  } else if (!has_named) {
    const std::string need = find_need();
    const std::string remedy =
        need.empty() ? fmt::format(", select a library with {}, or build with native layers instead: {}",
                                   setting_name(Setting::plugin_libraries), setting_name(Setting::without_plugins))
                     : fmt::format(", or select a library with {}; without plugins TensorRT does not run {}",
                                   setting_name(Setting::plugin_libraries), need);
    throw Error(Error::Kind::missing_tool,
                fmt::format("{}: the model has plugin layers, and the plugin library does not exist: {}\n"
                            "Build the library with `make build` (it needs nvcc, which `make deps` installs){}",
                            model, own.path.string(), remedy));
  }
  return libraries;
}

}  // namespace graft::engine
