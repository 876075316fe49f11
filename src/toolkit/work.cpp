// Implements progress and cancellation of a call, and the engine that checks the token.
#include "toolkit/work.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/answer.hpp"

namespace graft::toolkit {
namespace {

/// A compiled model that throws Stopped instead of starting a run if the caller has cancelled the token.
class WatchedModel final : public runtime::CompiledModel, public runtime::HasAnswer {
 public:
  WatchedModel(const Work& work, std::unique_ptr<runtime::CompiledModel> model, std::string engine)
      : work_(work), model_(std::move(model)), engine_(std::move(engine)) {}
  [[nodiscard]] runtime::Answer answer() const override { return answer_of(*model_, engine_); }
  using runtime::CompiledModel::run;
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> new_request() const override {
    return std::make_unique<WatchedModel>(work_, model_->new_request(), engine_);
  }
  void run(const runtime::TensorMap& inputs, const std::function<void(const runtime::TensorMap&)>& look) override {
    work_.check_cancelled();
    model_->run(inputs, look);
  }

 private:
  const Work& work_;
  std::unique_ptr<runtime::CompiledModel> model_;
  std::string engine_;
};

/// The engine for the work of one call of the API. It checks before each run, and during a run, whether the caller has
/// cancelled the token, and records the models that it compiles.
class WatchedEngine final : public runtime::Engine {
 public:
  WatchedEngine(const Work& work, const runtime::Engine& engine, UsedEngines& used)
      : work_(work), engine_(engine), used_(used) {}
  using runtime::Engine::compile;
  [[nodiscard]] std::string_view name() const override { return engine_.name(); }
  [[nodiscard]] bool can_run() const override { return engine_.can_run(); }
  [[nodiscard]] const runtime::Engine* checked() const override {
    const runtime::Engine* form = engine_.checked();
    return form == nullptr ? nullptr : &wrap(*form, checked_);
  }
  [[nodiscard]] const runtime::Engine& unchecked() const override { return wrap(engine_.unchecked(), unchecked_); }
  /// Returns the second engine, which only confirms noise floors. `used_` does not record the models that it runs.
  [[nodiscard]] const runtime::Engine* second() const override { return engine_.second(); }
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const graft::onnx::Model& model,
                                                                const runtime::CompileOptions& options) const override {
    work_.check_cancelled();
    runtime::CompileOptions watched = options;
    watched.should_stop = [&work = work_] { return work.is_cancelled(); };
    std::unique_ptr<runtime::CompiledModel> compiled = compile_or_name_fault(engine_, model, watched);
    used_.note(model, *compiled, engine_);
    return std::make_unique<WatchedModel>(work_, std::move(compiled), std::string(engine_.name()));
  }
  [[nodiscard]] runtime::TensorMap evaluate_constant_graph(const graft::onnx::Model& model) const override {
    work_.check_cancelled();
    return engine_.evaluate_constant_graph(model);
  }

 private:
  /// Returns `form`, the checked or the unchecked version of the engine, in a wrapper that checks the token as well.
  /// `wrapped` keeps the wrapper for the next call. Returns this object if `form` is the engine itself.
  [[nodiscard]] const runtime::Engine& wrap(const runtime::Engine& form,
                                            std::unique_ptr<WatchedEngine>& wrapped) const {
    if (&form == &engine_) return *this;
    const std::lock_guard lock(mutex_);
    if (wrapped == nullptr) wrapped = std::make_unique<WatchedEngine>(work_, form, used_);
    return *wrapped;
  }

  const Work& work_;
  const runtime::Engine& engine_;
  UsedEngines& used_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<WatchedEngine> checked_;
  mutable std::unique_ptr<WatchedEngine> unchecked_;
};

}  // namespace

Work::Work(const Watch& watch, CpuEngine engine, Purpose purpose)
    : watch_(watch), engine_(std::make_unique<WatchedEngine>(*this, engine_of(engine, purpose), used_)) {}

const runtime::Engine& Work::engine() const { return *engine_; }

double Work::fraction() {
  const std::scoped_lock lock(mutex_);
  return fraction_;
}

bool Work::is_cancelled() const { return watch_.cancel.is_cancelled(); }

void Work::check_cancelled() const {
  if (is_cancelled()) throw runtime::Stopped{};
}

void Work::report(double fraction, std::string_view text) {
  const std::lock_guard lock(mutex_);
  fraction_ = std::clamp(fraction, fraction_, 1.0);
  if (watch_.progress) {
    try {
      watch_.progress(fraction_, text);
    } catch (...) {
      thrown_ = std::current_exception();
      throw runtime::Stopped{};
    }
  }
  check_cancelled();
}

void Work::report_end() {
  const std::lock_guard lock(mutex_);
  if (watch_.progress) watch_.progress(1, "done");
}

void Work::report_step(const std::string& step, std::size_t done, std::size_t total) {
  if (step != step_) {
    step_ = step;
    step_begin_ = fraction_;
  }
  const double part = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  report(step_begin_ + (1 - step_begin_) / 2 * part, step);
}

void run_side_by_side(const std::function<void(const CancelToken&)>& aside, const std::function<void()>& here,
                      CancelToken stop_here, const CancelToken& outer) {
  CancelToken stop_aside;
  std::future<void> other = std::async(std::launch::async, [&] {
    try {
      aside(stop_aside);
    } catch (...) {
      stop_here.cancel();
      throw;
    }
  });
  try {
    here();
  } catch (...) {
    const bool is_aside_first = stop_here.is_cancelled();
    stop_aside.cancel();
    if (is_aside_first) other.get();
    other.wait();
    throw;
  }
  constexpr std::chrono::milliseconds often{100};
  while (other.wait_for(often) == std::future_status::timeout) {
    if (outer.is_cancelled()) stop_aside.cancel();
  }
  other.get();
}

}  // namespace graft::toolkit
