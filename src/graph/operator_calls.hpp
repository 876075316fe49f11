// Which calls of functions are operators.
#pragma once

#include "graph/model.hpp"

namespace graft {

/// A call of such a function stands for an operator, Graft's or of a library of somebody's own, whatever body the file
/// has for it, and is left as it is where calls of functions give way to bodies.
[[nodiscard]] bool is_operator_call(const FunctionKey& function);

}  // namespace graft
