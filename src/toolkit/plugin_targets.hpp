// Checks whether the plugins of an engine can run on its targets.
#pragma once

#include <filesystem>

#include "graft/toolkit/build.hpp"

namespace graft::toolkit {

/// Throws Error (answer_is_no) if `build` with these options would create Graft's plugins, and the plugin library has
/// no code for a target. The message has the commands that lead to an engine. Takes a fraction of a second, so that it
/// can be called before long work. Throws Error (missing_tool) if the plugin library or TensorRT is missing.
void check_plugin_targets(const Model& model, const std::filesystem::path& engine, const BuildOptions& options);

}  // namespace graft::toolkit
