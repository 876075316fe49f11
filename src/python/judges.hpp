// The values of the argument `judge` in Python.
#pragma once

#include <string>

#include "graft/toolkit/inspect.hpp"

namespace graft::python {

/// Returns the judge of this name. Throws Error for an unknown name.
[[nodiscard]] toolkit::Judge judge_of(const std::string& word);

}  // namespace graft::python
