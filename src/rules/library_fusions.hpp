// The fusions of libraries of operators: rules of the kind `match` that the library holds.
#pragma once

#include <vector>

#include "graft/operator/registry.hpp"
#include "passes/rewriter.hpp"
#include "rules/rule.hpp"

namespace graft::rules {

/// Returns the fusions (rules of the kind `match`) that an operator library contains. Throws Error with library, file,
/// line and column for any other rule, and for an operator that the library does not have.
[[nodiscard]] std::vector<Rule> library_fusions(const OperatorLibrary& library);

/// Applies the fusions of all loaded libraries to the model. If an operator cannot replace a match, records the reason
/// as a near miss.
void fuse_library_operators(passes::Rewriter& rewriter);

}  // namespace graft::rules
