// Trials of TensorRT within a call of the toolkit.
#pragma once

#include <fmt/format.h>

#include <string>

#include "inspect/trials.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {

/// Returns callbacks that report the progress of trials to `work`, whose remaining part the trials are. `on_end` is
/// called after each trial.
[[nodiscard]] inline inspect::TrialCallbacks trial_callbacks(
    Work& work, std::function<void(const inspect::TrialProgress&)> on_end = {}) {
  const auto on_start = [&work, begin = work.fraction()](const inspect::TrialProgress& trial) {
    work.report(begin + (1 - begin) * trial.fraction,
                trial.number == 0 ? std::string(trial.action)
                                  : fmt::format("{} number {}: {} node{}", trial.action, trial.number, trial.nodes,
                                                trial.nodes == 1 ? "" : "s"));
  };
  return {.on_start = on_start, .on_end = std::move(on_end)};
}

}  // namespace graft::toolkit
