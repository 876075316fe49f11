// The facts about Graft's operators, and the operators that its readers support, for programs that show them.
#pragma once

#include <string>
#include <vector>

#include "graft/report/ops.hpp"
#include "graft/toolkit/operators.hpp"
#include "import/caffe/import.hpp"
#include "import/tensorflow/import.hpp"

namespace graft::toolkit {

using graft::caffe_layers;
using graft::tensorflow_operators;

/// Returns the facts of every registered operator.
[[nodiscard]] std::vector<report::OperatorFacts> operator_facts();

/// Returns the facts of the operator with this name, or of the operator that replaces a plugin with this name. The case
/// of letters is ignored. Throws Error for an unknown name.
[[nodiscard]] report::OperatorFacts operator_facts(const std::string& name);

}  // namespace graft::toolkit
