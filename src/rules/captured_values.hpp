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

/// Returns the value of an attribute, or ONNX's default if the attribute is not written. An attribute that is an input
/// in newer operator sets is read from that input. Returns nothing if the attribute is absent, or neither a number nor
/// a string.
[[nodiscard]] std::optional<RuleValue::Data> attribute_data(const onnx::Node& node, std::string_view name);

/// Returns the attributes of a rule with the value of each expression in this region. Throws Error naming the place.
[[nodiscard]] RuleAttributes evaluate_attributes(const RuleAttributes& attributes, const Region& region);

/// Returns a value as an attribute of `type` or, without a type, of the type in which it is written. Throws Error
/// naming the place for a value of another type.
[[nodiscard]] AttributeValue to_typed_attribute(const RuleValue& value, const std::string& name,
                                                std::optional<AttributeType> type);

}  // namespace graft::rules
