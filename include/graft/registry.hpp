// The operators that are linked into a program or plugin library.
#pragma once

#include <span>
#include <string_view>

#include "graft/operator.hpp"

namespace graft {

/// All of them, in the order of ops.inc. Defined once in each program, by the list that its build names.
[[nodiscard]] std::span<const OperatorType* const> operators();

/// Nothing for an unknown name.
[[nodiscard]] const OperatorType* find_operator(std::string_view name);

}  // namespace graft
