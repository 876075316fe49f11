// Searches the folder of the program or library that contains this code, and the library folders next to that folder.
#include "engine/plugin_library.hpp"

#include <algorithm>
#include <system_error>

#include "core/executable_folder.hpp"
#include "engine/driver.hpp"

namespace graft::engine {

PluginLibrary own_plugin_library() {
  namespace fs = std::filesystem;
  const fs::path folder = executable_folder().parent_path();
  std::error_code ignored;
  if (const fs::path beside = executable_folder() / "libgraft_plugins.so"; fs::is_regular_file(beside, ignored)) {
    return {.path = beside, .exists = true};
  }
  for (const char* const lib : library_folders) {
    const fs::path candidate = folder / lib / "libgraft_plugins.so";
    if (fs::is_regular_file(candidate, ignored)) return {.path = candidate, .exists = true};
  }
  return {.path = folder / "lib" / "libgraft_plugins.so", .exists = false};
}

bool has_own_plugin_library(const std::vector<std::string>& libraries) {
  const std::filesystem::path own = own_plugin_library().path.filename();
  return std::any_of(libraries.begin(), libraries.end(),
                     [&](const std::string& library) { return std::filesystem::path(library).filename() == own; });
}

namespace {

PluginLibrary beside_own(const char* file) {
  PluginLibrary library = own_plugin_library();
  library.path.replace_filename(file);
  std::error_code ignored;
  library.exists = std::filesystem::is_regular_file(library.path, ignored);
  return library;
}

}  // namespace

PluginLibrary own_stand_ins() { return beside_own("libgraft_stand_ins.so"); }

PluginLibrary own_onnx_names() { return beside_own("libgraft_onnx.so"); }

}  // namespace graft::engine
