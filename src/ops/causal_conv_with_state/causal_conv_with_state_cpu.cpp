// Reference kernel of CausalConvWithState.
#include <cmath>

#include "ops/causal_conv_with_state/task.hpp"
#include "ops/reference.hpp"

namespace graft::ops {
namespace {

/// Returns element `at` of a row of the sequence, which consists of the past followed by x.
template <class Element>
Element element_of(const CausalTask<Element>& task, std::int64_t row, std::int64_t at) {
  const std::int64_t state = task.taps - 1;
  if (at >= state) return task.x[row * task.length + at - state];
  return task.past == nullptr ? static_cast<Element>(0.F) : task.past[row * state + at];
}

template <class Element>
void run_row(const CausalTask<Element>& task, std::int64_t row) {
  const std::int64_t channel = row % task.channels;
  for (std::int64_t place = 0; place < task.length; ++place) {
    double sum = task.bias == nullptr ? 0 : load(task.bias[channel], 1);
    for (std::int64_t tap = 0; tap < task.taps; ++tap) {
      sum += load(task.weight[channel * task.taps + tap], 1) * load(element_of(task, row, place + tap), 1);
    }
    task.y[row * task.length + place] = store<Element>(task.has_silu ? sum / (1 + std::exp(-sum)) : sum, 1);
  }
  for (std::int64_t i = 0; i + 1 < task.taps; ++i) {
    task.present[row * (task.taps - 1) + i] = element_of(task, row, task.length + i);
  }
}

}  // namespace

Status run(const CausalConvWithState& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  return dispatch(problem.inputs[CausalConvWithState::x].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const CausalTask<Element> task(op, problem, buffers);
    context.parallel_for(task.rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) run_row(task, row);
    });
    return {};
  });
}

}  // namespace graft::ops
