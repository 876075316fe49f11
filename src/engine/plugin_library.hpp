// Where Graft's own plugin libraries are.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace graft::engine {

struct PluginLibrary {
  std::filesystem::path path;  ///< Where the library is, or is expected.
  bool exists = false;
};

/// Returns libgraft_plugins.so of this program, as it is built or installed.
[[nodiscard]] PluginLibrary own_plugin_library();
/// Returns whether that library, or a copy of it, is among libraries that were named.
[[nodiscard]] bool has_own_plugin_library(const std::vector<std::string>& libraries);
/// Returns libgraft_stand_ins.so, which lies beside it.
[[nodiscard]] PluginLibrary own_stand_ins();
/// Returns libgraft_onnx.so, which has plugins under the names of standard ONNX operators and lies there too.
[[nodiscard]] PluginLibrary own_onnx_names();

}  // namespace graft::engine
