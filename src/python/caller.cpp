// The worker thread passes one function at a time to the caller's thread, which checks for signals in between.
#include "python/caller.hpp"

#include <chrono>

namespace graft::python {

void Caller::run(const std::function<void()>& function) {
  std::unique_lock lock(mutex_);
  asked_ = &function;
  changed_.notify_all();
  changed_.wait(lock, [&] { return asked_ == nullptr; });
  if (raised_) throw Stopped{};
}

void Caller::guard(const std::function<void()>& function) {
  if (raised_) return;
  try {
    function();
    if (PyErr_CheckSignals() != 0) nanobind::raise_python_error();
  } catch (...) {
    raised_ = std::current_exception();
    cancel_.cancel();
  }
}

void Caller::serve() {
  constexpr std::chrono::milliseconds between_signals(50);
  const std::function<void()> nothing = [] {};
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    changed_.wait_for(lock, between_signals, [&] { return is_over_ || asked_ != nullptr; });
    const std::function<void()>* asked = asked_;
    lock.unlock();
    {
      const nanobind::gil_scoped_acquire acquired;
      guard(asked != nullptr ? *asked : nothing);
    }
    lock.lock();
    if (asked == nullptr) continue;
    asked_ = nullptr;
    changed_.notify_all();
  }
}

void Caller::end() {
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  changed_.notify_all();
}

toolkit::Watch watch_of(Caller& caller, const nanobind::object& progress, const toolkit::CancelToken& cancel) {
  toolkit::Watch watch{.progress = {}, .cancel = cancel};
  if (progress.is_none()) return watch;
  watch.progress = [&caller, callback = nanobind::handle(progress)](double fraction, std::string_view text) {
    caller.run([&] { callback(fraction, nanobind::str(text.data(), text.size())); });
  };
  return watch;
}

}  // namespace graft::python
