// Which calls of functions are operators.
#include "onnx/operator_calls.hpp"

#include "graft/registry.hpp"

namespace graft::onnx {

bool is_plain_call(const FunctionKey& function) {
  if (function.domain == onnx_domain) return false;
  const OperatorType* type = operator_libraries().empty() ? nullptr : find_operator(function.name);
  return type == nullptr || library_of(*type) == nullptr;
}

}  // namespace graft::onnx
