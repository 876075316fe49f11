// Implements progress and cancellation of a call, and the engine that checks the token.
#include "toolkit/work.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "runtime/answer.hpp"

namespace graft::toolkit {
namespace {

/// A compiled model that calls `check` before each run, which throws where the work is cancelled.
template <class Check>
class WatchedModel final : public runtime::CompiledModel, public runtime::HasAnswer {
 public:
  WatchedModel(std::unique_ptr<runtime::CompiledModel> model, Check check, std::string engine)
      : model_(std::move(model)), check_(check), engine_(std::move(engine)) {}
  [[nodiscard]] runtime::Answer answer() const override { return answer_of(*model_, engine_); }
  using runtime::CompiledModel::run;
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> new_request() const override {
    return std::make_unique<WatchedModel>(model_->new_request(), check_, engine_);
  }
  void run(const runtime::TensorMap& inputs, const std::function<void(const runtime::TensorMap&)>& look) override {
    check_();
    model_->run(inputs, look);
  }

 private:
  std::unique_ptr<runtime::CompiledModel> model_;
  Check check_;
  std::string engine_;
};

}  // namespace

Work::Work(const Watch& watch, CpuEngine engine, Purpose purpose)
    : watch_(watch), engine_(*this, engine_of(engine, purpose), used_) {}

double Work::fraction() {
  const std::scoped_lock lock(mutex_);
  return fraction_;
}

void Work::check_cancelled() const {
  if (is_cancelled()) throw runtime::Stopped{};
}

const runtime::Engine* Work::Engine::checked() const {
  const runtime::Engine* form = engine_.checked();
  return form == nullptr ? nullptr : &wrap(*form, checked_);
}

const runtime::Engine& Work::Engine::unchecked() const { return wrap(engine_.unchecked(), unchecked_); }

const runtime::Engine& Work::Engine::wrap(const runtime::Engine& form, std::unique_ptr<Engine>& wrapped) const {
  if (&form == &engine_) return *this;
  const std::lock_guard lock(mutex_);
  if (wrapped == nullptr) wrapped = std::make_unique<Engine>(work_, form, used_);
  return *wrapped;
}

std::unique_ptr<runtime::CompiledModel> Work::Engine::compile(const graft::onnx::Model& model,
                                                              const runtime::CompileOptions& options) const {
  work_.check_cancelled();
  const auto check = [&work = work_] { work.check_cancelled(); };
  runtime::CompileOptions watched = options;
  watched.should_stop = [&work = work_] { return work.is_cancelled(); };
  std::unique_ptr<runtime::CompiledModel> compiled = compile_or_name_fault(engine_, model, watched);
  used_.note(model, *compiled, engine_);
  return std::make_unique<WatchedModel<decltype(check)>>(std::move(compiled), check, std::string(engine_.name()));
}

runtime::TensorMap Work::Engine::evaluate_constant_graph(const graft::onnx::Model& model) const {
  work_.check_cancelled();
  return engine_.evaluate_constant_graph(model);
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

}  // namespace graft::toolkit
