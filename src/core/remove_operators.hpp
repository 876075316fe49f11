// Removes a library of operators from the registry, for loaders that check the library after it was added.
#pragma once

#include <string_view>

namespace graft {

/// Removes a library's operators from the registry. May be called from any thread; spans that were returned before stay
/// valid.
void remove_operator_library(std::string_view file);

}  // namespace graft
