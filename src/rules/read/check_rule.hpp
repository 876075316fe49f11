// Checks a rule that was read, as far as possible without a model: its attributes, the names of its pattern, and the
// options that contradict each other.
#pragma once

#include "rules/rule.hpp"

namespace graft::rules {

/// Throws Error with file, line and column of a rule, attribute or input that is invalid. Expressions are not evaluated
/// here, because their values depend on a match. Attributes of operators that belong neither to ONNX nor to Graft are
/// not checked.
void check_rule(const Rule& rule);

}  // namespace graft::rules
