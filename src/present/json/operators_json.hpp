// Graft's operators, and the layers and operators that the Caffe and TensorFlow readers support, as JSON.
#pragma once

#include <vector>

#include "present/json/values.hpp"
#include "toolkit/operators.hpp"

namespace graft::present {

[[nodiscard]] Json to_json(const toolkit::OperatorFacts& facts);
[[nodiscard]] Json to_json(const std::vector<toolkit::OperatorFacts>& operators);
[[nodiscard]] Json to_json(const std::vector<CaffeLayer>& layers);
[[nodiscard]] Json to_json(const std::vector<TensorFlowOperator>& operators);

}  // namespace graft::present
