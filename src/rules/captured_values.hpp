// Computes the values of a rule for one match: `@epsilon` is an attribute of the matched node, or a constant of the
// matched pattern.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "onnx/model.hpp"
#include "rules/matching.hpp"
#include "rules/rule.hpp"

namespace graft::rules {

/// Returns the value of an attribute, or ONNX's default if the attribute is not written. An attribute that newer opsets
/// have as an input is read from that input. Returns nothing if the attribute is absent and has no default, or if its
/// value consists neither of numbers nor of strings.
[[nodiscard]] std::optional<RuleValue::Data> attribute_data(const onnx::Node& node, std::string_view name);

/// Returns the attributes of a rule, with each expression replaced by its value for the matched nodes of `region`.
/// Throws Error with file, line and column if an expression cannot be evaluated.
[[nodiscard]] RuleAttributes evaluate_attributes(const RuleAttributes& attributes, const Region& region);

/// Returns a value as an attribute of `type`; without a type, integers, floating-point numbers and strings keep their
/// type. Throws Error with file, line and column if the value cannot have the type. `name` is the attribute's name in
/// messages.
[[nodiscard]] AttributeValue to_typed_attribute(const RuleValue& value, const std::string& name,
                                                std::optional<AttributeType> type);

}  // namespace graft::rules
