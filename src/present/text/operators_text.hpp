// Graft's operators, and the layers and operators that the Caffe and TensorFlow readers support, in words.
#pragma once

#include <vector>

#include "graft/report/ops.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

/// Returns all operators with the plugins that they replace.
[[nodiscard]] Listing operators_text(const std::vector<report::OperatorFacts>& operators);
/// Returns the whole documentation of one operator.
[[nodiscard]] Listing operator_text(const report::OperatorFacts& facts);

[[nodiscard]] Table layers_table(const std::vector<report::CaffeLayer>& layers);
[[nodiscard]] Table operators_table(const std::vector<report::TensorFlowOperator>& operators);

}  // namespace graft::present
