// Checks a rule that was read, as far as possible without a model: its attributes, the names of its pattern, and the
// options that contradict each other.
#pragma once

#include "rules/rule.hpp"

namespace graft::rules {

/// Throws Error naming the place of the rule, attribute or input that is wrong. An expression is checked when it has a
/// value. Attributes of operators that are neither ONNX's nor Graft's are not checked.
void check_rule(const Rule& rule);

}  // namespace graft::rules
