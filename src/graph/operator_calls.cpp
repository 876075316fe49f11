// Which calls of functions are operators.
#include "graph/operator_calls.hpp"

#include "graft/registry.hpp"

namespace graft {

bool is_plain_call(const FunctionKey& function) {
  if (function.domain == onnx_domain) return false;
  const OperatorType* type = operator_libraries().empty() ? nullptr : find_operator(function.name);
  return type == nullptr || library_of(*type) == nullptr;
}

}  // namespace graft
