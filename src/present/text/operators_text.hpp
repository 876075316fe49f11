// Operators, and what readers of other formats know, in words.
#pragma once

#include <string>
#include <vector>

#include "present/text/listing.hpp"
#include "toolkit/operators.hpp"

namespace graft::present {

/// What an attribute may be: its words, or its range.
[[nodiscard]] std::string allowed_text(const AttributeInfo& info);

/// All operators, with what they stand in for.
[[nodiscard]] Listing operators_text(const std::vector<toolkit::OperatorFacts>& operators);
/// One in full.
[[nodiscard]] Listing operator_text(const toolkit::OperatorFacts& facts);

[[nodiscard]] Table layers_table(const std::vector<CaffeLayer>& layers);
[[nodiscard]] Table operators_table(const std::vector<TensorFlowOperator>& operators);

}  // namespace graft::present
