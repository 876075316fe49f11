// No cases: what is wrong with the operators comes before them.
#include "ops/operator_case.hpp"

const std::vector<graft::ops::OperatorCases>& graft::ops::operator_cases() {
  static const std::vector<OperatorCases> none;
  return none;
}
