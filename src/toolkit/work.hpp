// A call of the toolkit: its progress, its cancellation, and the engine that it uses.
#pragma once

#include <cstddef>
#include <exception>
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

  /// Returns the chosen engine, which checks the token before each run and while one runs.
  [[nodiscard]] const runtime::Engine& engine() const { return engine_; }
  /// Returns the engines that have compiled models so far.
  [[nodiscard]] const UsedEngines& used() const { return used_; }
  [[nodiscard]] bool is_cancelled() const { return watch_.cancel.is_cancelled(); }

  /// Returns the fraction that was reported last, 0 to 1.
  [[nodiscard]] double fraction();
  /// Reports progress to the caller; the fraction, 0 to 1, never decreases. Ends the work where the token was used or
  /// the callback throws.
  void report(double fraction, std::string_view text);
  /// Reports progress where the number of steps is unknown: each step takes half of the remaining fraction.
  void report_step(const std::string& step, std::size_t done, std::size_t total);
  void check_cancelled() const;

  /// Runs the function and returns its result. Throws Cancelled, or the exception of the callback, where the work is
  /// ended early; Error where two engines dispute a result, and where memory is exhausted.
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
  /// Reports the end of the work. The token is not checked any more, because the work is done; an exception of the
  /// callback is thrown to the caller.
  void report_end();

  class Engine final : public runtime::Engine {
   public:
    Engine(const Work& work, const runtime::Engine& engine, UsedEngines& used)
        : work_(work), engine_(engine), used_(used) {}
    using runtime::Engine::compile;
    [[nodiscard]] std::string_view name() const override { return engine_.name(); }
    [[nodiscard]] bool can_run() const override { return engine_.can_run(); }
    [[nodiscard]] const runtime::Engine* checked() const override;
    [[nodiscard]] const runtime::Engine& unchecked() const override;
    /// Returns the second engine without recording it: it only confirms a noise floor.
    [[nodiscard]] const runtime::Engine* second() const override { return engine_.second(); }
    [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(
        const graft::onnx::Model& model, const runtime::CompileOptions& options) const override;
    [[nodiscard]] runtime::TensorMap evaluate_constant_graph(const graft::onnx::Model& model) const override;

   private:
    /// Returns the wrapper of `form`, another form of this engine, that checks the token as well.
    [[nodiscard]] const runtime::Engine& wrap(const runtime::Engine& form, std::unique_ptr<Engine>& wrapped) const;

    const Work& work_;
    const runtime::Engine& engine_;
    UsedEngines& used_;
    mutable std::mutex mutex_;
    mutable std::unique_ptr<Engine> checked_;
    mutable std::unique_ptr<Engine> unchecked_;
  };

  const Watch& watch_;
  UsedEngines used_;
  Engine engine_;
  std::mutex mutex_;
  std::exception_ptr thrown_;  // the exception of the callback
  double fraction_ = 0;
  std::string step_;
  double step_begin_ = 0;
};

}  // namespace graft::toolkit
