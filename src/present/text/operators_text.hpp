// Graft's operators, and the layers and operators that the Caffe and TensorFlow readers support, in words.
#pragma once

#include <string>
#include <vector>

#include "present/text/listing.hpp"
#include "toolkit/operators.hpp"

namespace graft::present {

/// Returns the allowed values of an attribute: its choices or its range.
[[nodiscard]] std::string allowed_text(const AttributeInfo& info);

/// Returns all operators with the plugins that they replace.
[[nodiscard]] Listing operators_text(const std::vector<toolkit::OperatorFacts>& operators);
/// Returns the whole documentation of one operator.
[[nodiscard]] Listing operator_text(const toolkit::OperatorFacts& facts);

[[nodiscard]] Table layers_table(const std::vector<CaffeLayer>& layers);
[[nodiscard]] Table operators_table(const std::vector<TensorFlowOperator>& operators);

}  // namespace graft::present
