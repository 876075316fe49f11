// Takes a library of operators out of the registry again: for loaders that look at it after it was added.
#pragma once

#include <string_view>

namespace graft {

/// As if the library had never been added. From any thread; what was returned before stays valid.
void remove_operator_library(std::string_view file);

}  // namespace graft
