// Quotes text for a shell, for the program.
#pragma once

#include "core/shell_quoted.hpp"

namespace graft::present {

using graft::shell_argument;
using graft::shell_path;
using graft::shell_quoted;

}  // namespace graft::present
