// The fusions that libraries of operators bring: rules of the kind `match`, read from the library.
#pragma once

#include <vector>

#include "graft/registry.hpp"
#include "passes/rule_file.hpp"

namespace graft::passes {

/// Throws Error naming library, file, line and column for what is no such rule, or makes an operator that the library
/// does not have.
[[nodiscard]] std::vector<Rule> library_fusions(const OperatorLibrary& library);

}  // namespace graft::passes
