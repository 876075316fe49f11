// What Graft's operators are, and what its readers know, for programs that show it.
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

/// An operator with what follows from its definition.
struct OperatorFacts {
  struct Function {
    std::string name;
    std::string body;
  };

  const OperatorType* type = nullptr;
  std::string library;                     ///< The file that it was loaded from; empty for Graft's own.
  std::vector<Function> functions;         ///< All bodies that its ONNX function can have, by their names.
  std::optional<std::string> native_form;  ///< The native layers that are the same and as fast.
};

/// Every operator that is registered.
[[nodiscard]] std::vector<OperatorFacts> operator_facts();

/// The operator of this name, or that stands in for a plugin of this name, whatever the case of its letters. Throws
/// Error for a name that nothing has.
[[nodiscard]] OperatorFacts operator_facts(const std::string& name);

}  // namespace graft::toolkit
