// Locates Graft's own plugin libraries.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace graft::engine {

struct PluginLibrary {
  std::filesystem::path path;  ///< The path of the library, or the path where it was expected.
  bool exists = false;
};

/// Returns the path of libgraft_plugins.so in the build or installation of this program, and whether the file exists.
[[nodiscard]] PluginLibrary own_plugin_library();
/// Returns whether `libraries` contains Graft's plugin library or a copy of it, judged by the file name.
[[nodiscard]] bool has_own_plugin_library(const std::vector<std::string>& libraries);
/// Returns the path of libgraft_stand_ins.so, in the folder of libgraft_plugins.so, and whether the file exists. This
/// library registers Graft's plugins under the names of plugins of other libraries.
[[nodiscard]] PluginLibrary own_stand_ins();
/// Returns the path of libgraft_onnx.so, in the folder of libgraft_plugins.so, and whether it exists. This library
/// registers plugins under the names of standard ONNX operators.
[[nodiscard]] PluginLibrary own_onnx_names();

}  // namespace graft::engine
