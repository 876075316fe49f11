// Operators from shared libraries of somebody's own.
#pragma once

#include <string>
#include <vector>

namespace graft {

/// Opens libraries that graft_add_plugin_library made (cmake/GraftOperators.cmake) and adds their operators to
/// operators(). A file that is named twice is loaded once. Libraries stay loaded to the end of the process, and opening
/// one runs its code: see docs/security.md. Throws Error for what is no such library, was made with other headers, or
/// has an operator whose name is taken.
void load_operator_libraries(const std::vector<std::string>& files);

}  // namespace graft
