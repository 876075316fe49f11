// Long work in a thread of its own, while the caller's thread answers what it asks of Python.
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

/// The caller's thread. It holds the GIL only while it runs Python: other threads go on, and Ctrl-C ends the work.
class Caller {
 public:
  explicit Caller(const toolkit::CancelToken& cancel) : cancel_(cancel) {}

  /// From the worker: runs the function in the caller's thread, with the GIL, and ends the work where that raises.
  void run(const std::function<void()>& function);

  /// From the caller's thread, without the GIL: does what the worker asks until `end`.
  void serve();
  void end();

  /// What was raised meanwhile, with the GIL; it goes before whatever became of the work.
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  /// No Error: nothing catches it and goes on.
  struct Stopped {};

  /// With the GIL.
  void guard(const std::function<void()>& function);

  toolkit::CancelToken cancel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* asked_ = nullptr;
  bool is_over_ = false;
  std::exception_ptr raised_;
};

/// Where the work reports to, and what ends it.
[[nodiscard]] toolkit::Watch watch_of(Caller& caller, const nanobind::object& progress,
                                      const toolkit::CancelToken& cancel);

/// Runs `work(watch, caller)`, which may not touch Python but through the caller.
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
