// Checks that an operator has the attributes that a rule sets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rules/rule.hpp"

namespace graft::rules {

/// Throws Error naming the place for an attribute that the operator does not have, of another type or out of range. An
/// expression is checked when it has a value. Attributes of operators that are neither ONNX's nor Graft's are not
/// checked.
void check_attributes(const RuleOperator& with, const std::vector<std::pair<std::string, RuleValue>>& given);

}  // namespace graft::rules
