// Operators from shared libraries of somebody's own.
#pragma once

#include <string>
#include <vector>

#include "graft/registry.hpp"

namespace graft {

/// Opens a library that graft_add_plugin_library made (cmake/GraftOperators.cmake) and adds its operators to
/// operators(); returns it. A file that is named twice is loaded once. Libraries stay loaded to the end of the process,
/// and opening one runs its code: see docs/security.md. Throws Error for what is no such library, was made with other
/// headers, or has an operator whose name is taken.
const OperatorLibrary& load_operator_library(const std::string& file);

/// The folders of a loaded library's operators, in their order: their names in snake case. Throws Error for a library
/// that was linked from others.
[[nodiscard]] std::vector<std::string> operator_folders(const OperatorLibrary& library);

/// Whether TensorRT finds plugins in a loaded library: one that was built without CUDA has none.
[[nodiscard]] bool has_plugins(const OperatorLibrary& library);

}  // namespace graft
