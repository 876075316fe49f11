// A call of the toolkit: its progress, its cancellation, the engine that it uses, and work in two threads.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>

#include "graft/toolkit/progress.hpp"
#include "runtime/engine.hpp"
#include "toolkit/cpu_engines.hpp"

namespace graft::toolkit {

class Work {
 public:
  explicit Work(const Watch& watch, CpuEngine engine = CpuEngine::automatic, Purpose purpose = Purpose::proofs);
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Returns the chosen engine. It checks before each run, and during a run, whether the caller has cancelled the
  /// token.
  [[nodiscard]] const runtime::Engine& engine() const;
  /// Returns the engines that have compiled models so far.
  [[nodiscard]] const UsedEngines& used() const { return used_; }
  [[nodiscard]] bool is_cancelled() const;

  /// Returns the fraction that was reported last, 0 to 1.
  [[nodiscard]] double fraction();
  /// Reports progress to the caller; the fraction, 0 to 1, never decreases. Throws Stopped, which `run` converts, if
  /// the caller has cancelled the token or the callback throws.
  void report(double fraction, std::string_view text);
  /// Reports that `done` of `total` parts of a step are completed. Use it if the number of steps is unknown: each step
  /// gets half of the fraction that remained when it began.
  void report_step(const std::string& step, std::size_t done, std::size_t total);
  /// Throws Stopped, which `run` converts to Cancelled, if the caller has cancelled the token.
  void check_cancelled() const;

  /// Runs the function and returns its result. Throws Cancelled, or the exception of the callback, if the work is
  /// ended early; Error if two engines dispute a result or memory is exhausted.
  template <class Function>
  auto run(Function&& function) {
    try {
      check_cancelled();
      auto result = run_with_disputes_as_errors(function);
      report_end();
      return result;
    } catch (const runtime::Stopped&) {
      if (thrown_) std::rethrow_exception(thrown_);
      throw Cancelled();
    } catch (const std::bad_alloc&) {
      throw Error("not enough memory\nUse a machine with more memory, smaller shapes, or a smaller model");
    }
  }

 private:
  /// Reports to the caller that the work is complete. Does not check whether the token is cancelled. An exception of
  /// the callback is thrown to the caller.
  void report_end();

  const Watch& watch_;
  UsedEngines used_;
  const std::unique_ptr<const runtime::Engine> engine_;
  std::mutex mutex_;
  std::exception_ptr thrown_;  // the exception of the callback
  double fraction_ = 0;
  std::string step_;
  double step_begin_ = 0;
};

/// Runs `aside` in another thread and `here` in this one, and returns when both have ended. `aside` gets a token that
/// is cancelled if `here` throws or if `outer` is cancelled. `stop_here` is cancelled if `aside` throws; `here` has to
/// end soon after that, and after `outer` is cancelled. Throws the exception that one of them threw by itself, rather
/// than one that followed from its cancellation.
void run_side_by_side(const std::function<void(const CancelToken&)>& aside, const std::function<void()>& here,
                      CancelToken stop_here, const CancelToken& outer);

}  // namespace graft::toolkit
