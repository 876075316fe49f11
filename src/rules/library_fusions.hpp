// The fusions of libraries of operators: rules of the kind `match` that the library holds.
#pragma once

#include <vector>

#include "graft/operator/registry.hpp"
#include "passes/rewriter.hpp"
#include "rules/rule.hpp"

namespace graft::rules {

/// Returns the fusions of a library. Throws Error naming library, file, line and column for a rule that is not a
/// fusion, or whose operator the library does not have.
[[nodiscard]] std::vector<Rule> library_fusions(const OperatorLibrary& library);

/// Applies the fusions of all loaded libraries. If an operator cannot replace a match, the report gives the reason.
void fuse_library_operators(passes::Rewriter& rewriter);

}  // namespace graft::rules
