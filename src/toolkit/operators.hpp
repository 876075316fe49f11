// The facts about Graft's operators, and the operators that its readers support, for programs that show them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graft/registry.hpp"
#include "graft/toolkit/operators.hpp"
#include "import/caffe/import.hpp"
#include "import/tensorflow/import.hpp"

namespace graft::toolkit {

using graft::caffe_layers;
using graft::tensorflow_operators;

/// An operator with the facts that follow from its definition.
struct OperatorFacts {
  struct Function {
    std::string name;
    std::string body;
  };

  const OperatorType* type = nullptr;
  std::string library;                     ///< The file of its library; empty for Graft's own operators.
  std::vector<Function> functions;         ///< All bodies that its ONNX function can have.
  std::optional<std::string> native_form;  ///< The native layers that compute the same and are as fast, if any.
};

/// Returns the facts of every registered operator.
[[nodiscard]] std::vector<OperatorFacts> operator_facts();

/// Returns the facts of the operator with this name, or of the operator that replaces a plugin with this name. The case
/// of letters is ignored. Throws Error for an unknown name.
[[nodiscard]] OperatorFacts operator_facts(const std::string& name);

}  // namespace graft::toolkit
