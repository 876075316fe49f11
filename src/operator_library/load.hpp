// Loads operators from shared libraries that are not part of Graft.
#pragma once

#include <string>
#include <vector>

#include "graft/operator/registry.hpp"

namespace graft {

/// Loads a library that graft_add_plugin_library (cmake/GraftOperators.cmake) built, adds its operators to operators(),
/// and returns it. A file that is already loaded is not loaded again. Libraries stay loaded until the process ends, and
/// loading one runs its code: see docs/security.md. Throws Error if the file is not such a library, was compiled with
/// other headers, or contains an operator whose name is already used.
const OperatorLibrary& load_operator_library(const std::string& file);

/// Returns the folders of a loaded library's operators, in the order of the operators. A folder is the operator's name
/// in snake case. Throws Error for a library that was linked from other libraries.
[[nodiscard]] std::vector<std::string> operator_folders(const OperatorLibrary& library);

/// Returns whether TensorRT finds plugins in a loaded library. A library that was built without CUDA has none.
[[nodiscard]] bool has_plugins(const OperatorLibrary& library);

}  // namespace graft
