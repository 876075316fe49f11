// A problem of CausalConvWithState in the form that its kernels use.
#pragma once

#include <cstdint>

#include "ops/causal_conv_with_state/causal_conv_with_state.hpp"

namespace graft::ops {

/// The sizes and the typed addresses of a problem. A row is one channel of one item.
template <class Element>
struct CausalTask {
  CausalTask(const CausalConvWithState& op, const Problem& problem, const Buffers& buffers)
      : rows(problem.inputs[CausalConvWithState::x].extents[0] * problem.inputs[CausalConvWithState::x].extents[1]),
        channels(problem.inputs[CausalConvWithState::x].extents[1]),
        length(problem.inputs[CausalConvWithState::x].extents[2]),
        taps(static_cast<int>(problem.inputs[CausalConvWithState::weight].extents[2])),
        has_silu(op.activation != CausalActivation::none),
        x(input(problem, buffers, CausalConvWithState::x)),
        weight(input(problem, buffers, CausalConvWithState::weight)),
        bias(input(problem, buffers, CausalConvWithState::bias)),
        past(input(problem, buffers, CausalConvWithState::past_state)),
        y(static_cast<Element*>(buffers.outputs[0])),
        present(static_cast<Element*>(buffers.outputs[1])) {}

  std::int64_t rows;
  std::int64_t channels;
  std::int64_t length;
  int taps;
  bool has_silu;
  const Element* x;
  const Element* weight;
  const Element* bias;  ///< The bias; null stands for zeros.
  const Element* past;  ///< The past elements; null stands for zeros.
  Element* y;
  Element* present;

 private:
  /// Returns the address of an input, or null for an input without elements.
  static const Element* input(const Problem& problem, const Buffers& buffers, std::size_t port) {
    const bool has_elements = problem.inputs[port].extents.element_count() > 0;
    return has_elements ? static_cast<const Element*>(buffers.inputs[port]) : nullptr;
  }
};

}  // namespace graft::ops
