// Reports the progress of long calls, and cancels them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>

#include "graft/toolkit/error.hpp"

namespace graft::toolkit {

/// Called with the completed fraction, from 0 to 1 and never less than before, and a text about the current step. The
/// last call of successful work has 1. Calls do not overlap, and may come from other threads than the caller's. The
/// callback may throw: the work then ends, and the exception reaches the caller.
using ProgressCallback = std::function<void(double fraction, std::string_view text)>;

/// Called with each message of a process that works for the caller, and first with the command of the process. The
/// severity is "command", "internal_error", "error", "warning", "info", "verbose" or "output", which is text that the
/// process printed. Calls do not overlap, and may come from other threads than the caller's.
using LogCallback = std::function<void(std::string_view severity, std::string_view message)>;

/// Cancels work from another thread, from a signal handler or from a ProgressCallback. Copies are the same token. A
/// token stays cancelled. Moving a token copies it.
class CancelToken {
 public:
  CancelToken() = default;
  // There is no move: it would leave a token without a state.
  CancelToken(const CancelToken&) = default;
  CancelToken& operator=(const CancelToken&) = default;
  ~CancelToken() = default;

  void cancel() noexcept { state_->store(true); }
  [[nodiscard]] bool is_cancelled() const noexcept { return state_->load(); }

 private:
  std::shared_ptr<std::atomic<bool>> state_ = std::make_shared<std::atomic<bool>>(false);
};

/// Progress and cancellation, in the options of every function that may take long. The token is checked between the
/// steps of a call (reading a file, inferring shapes and each pass are steps), before each run of a model, and several
/// times a second while a model runs in the first engine and while TensorRT builds. The function then throws Cancelled.
/// A run in a second engine that confirms results, and a run of a constant subgraph, end before the token is checked.
/// The engine's process finishes an abandoned run, which continues to use cores and memory, and discards the result.
struct Watch {
  ProgressCallback progress = {};
  CancelToken cancel = {};
};

}  // namespace graft::toolkit
