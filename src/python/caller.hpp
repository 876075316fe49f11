// Runs long work in a worker thread, while the caller's thread runs the Python functions that the work calls.
#pragma once

#include <nanobind/nanobind.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "graft/toolkit/progress.hpp"

namespace graft::python {

/// The caller's thread during a call. It holds the GIL only while it runs Python, so that other Python threads
/// continue, and it ends the work on Ctrl-C.
class Caller {
 public:
  explicit Caller(const toolkit::CancelToken& cancel) : cancel_(cancel) {}

  /// Runs the function in the caller's thread, with the GIL, and ends the work where the function throws. Only the
  /// worker thread calls this function.
  void run(const std::function<void()>& function);

  /// Runs the functions that the worker passes to `run`, and checks for signals, until the worker calls `end`. Only the
  /// caller's thread calls this function, without the GIL.
  void serve();
  void end();

  /// Throws the exception of a Python function or of Ctrl-C, if there was one. It takes precedence over the result or
  /// the error of the work. The caller holds the GIL.
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  /// Ends the work. It is not an Error, so that no function of the toolkit catches it and continues.
  struct Stopped {};

  /// Runs the function and checks for signals. The first exception is stored and cancels the work; after it nothing
  /// runs. The caller holds the GIL.
  void guard(const std::function<void()>& function);

  toolkit::CancelToken cancel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* asked_ = nullptr;
  bool is_over_ = false;
  std::exception_ptr raised_;
};

/// Returns the watch for a call of the toolkit. The work reports its progress to the Python function `progress`, which
/// runs in the caller's thread. Without a function (Python's None), nothing is reported. `cancel` cancels the work.
[[nodiscard]] toolkit::Watch watch_of(Caller& caller, const nanobind::object& progress,
                                      const toolkit::CancelToken& cancel);

/// Runs `work(watch, caller)` in a worker thread and returns its result. The work may use Python only through `caller`.
/// `progress` is the Python function for watch_of(), and `given` the token that cancels the work, if the caller has
/// one. Throws the exception of a Python function, or the exception of the work.
template <class Function>
auto run_watched(const nanobind::object& progress, const std::optional<toolkit::CancelToken>& given, Function&& work) {
  using Result = std::invoke_result_t<Function, const toolkit::Watch&, Caller&>;
  const toolkit::CancelToken cancel = given.value_or(toolkit::CancelToken());
  Caller caller(cancel);
  const toolkit::Watch watch = watch_of(caller, progress, cancel);
  std::optional<Result> result;
  std::exception_ptr failed;
  {
    const nanobind::gil_scoped_release released;
    std::thread worker([&] {
      try {
        result.emplace(work(watch, caller));
      } catch (...) {
        failed = std::current_exception();
      }
      caller.end();
    });
    caller.serve();
    worker.join();
  }
  caller.rethrow();
  if (failed) std::rethrow_exception(failed);
  return std::move(*result);
}

}  // namespace graft::python
