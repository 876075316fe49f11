// The options of a build as arguments of the engine driver.
#pragma once

#include <string>
#include <vector>

#include "graft/toolkit/build.hpp"

namespace graft::toolkit {

/// Returns the arguments of the engine driver that select the TensorRT installation and the GPUs: --tensorrt and
/// --target, each only if the options set it.
[[nodiscard]] std::vector<std::string> choice_arguments(const BuildOptions& options);

/// Returns all options of the driver's command `build`, except the plugin libraries.
[[nodiscard]] std::vector<std::string> build_arguments(const Model& model, const BuildOptions& options);

}  // namespace graft::toolkit
