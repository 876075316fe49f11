// Determines whether the iterations of a Loop can end it.
#pragma once

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns whether the body of a Loop never ends the loop: it returns the constant true, or the condition that it
/// received. Such a Loop runs until its maximum number of iterations, if its initial condition is true.
[[nodiscard]] inline bool keeps_condition(const Graph& body) {
  if (body.outputs().empty() || body.inputs().size() < 2) return false;
  const Value* next = body.outputs()[0];
  while (next->producer != nullptr && next->producer->is("Identity")) next = next->producer->input(0);
  if (next == body.inputs()[1]) return true;
  const auto constant = next->constant();
  const auto numbers = constant ? constant->numbers() : std::nullopt;
  return numbers && numbers->size() == 1 && numbers->front() != 0;
}

}  // namespace graft::onnx
