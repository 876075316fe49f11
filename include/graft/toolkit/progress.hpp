// How long work tells how far it is, and how it is ended early.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>

#include "graft/toolkit/error.hpp"

namespace graft::toolkit {

/// Called with the part of the work that is done, from 0 to 1 and never less than before, and what is being done. The
/// last call of work that succeeds has 1. Calls come one at a time, not always from the caller's thread. It may throw:
/// the work ends then, and the exception reaches the caller.
using ProgressCallback = std::function<void(double fraction, std::string_view text)>;

/// Ends work from another thread, from a signal handler or from a ProgressCallback. Copies are the same token; it stays
/// cancelled, and one that was moved from is still the same.
class CancelToken {
 public:
  CancelToken() = default;
  // No moves: they would leave a token without a state.
  CancelToken(const CancelToken&) = default;
  CancelToken& operator=(const CancelToken&) = default;
  ~CancelToken() = default;

  void cancel() noexcept { state_->store(true); }
  [[nodiscard]] bool is_cancelled() const noexcept { return state_->load(); }

 private:
  std::shared_ptr<std::atomic<bool>> state_ = std::make_shared<std::atomic<bool>>(false);
};

/// In the options of everything that may take long. The token is looked at before each run of a model, and a few times
/// a second while TensorRT builds; the function then throws Cancelled.
struct Watch {
  ProgressCallback progress = {};
  CancelToken cancel = {};
};

}  // namespace graft::toolkit
