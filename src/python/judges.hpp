// Who judges, as Python says it.
#pragma once

#include <string>

#include "graft/toolkit/inspect.hpp"

namespace graft::python {

/// Throws Error for another word than rule, parser and builder.
[[nodiscard]] toolkit::Judge judge_of(const std::string& word);

}  // namespace graft::python
