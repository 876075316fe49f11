// Runs each model twice and compares the bits.
#include "verify/judge/repeats.hpp"

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "runtime/keeps_outputs.hpp"
#include "verify/inputs/random_values.hpp"

namespace graft::verify {
namespace {

/// Returns the name of the first output whose type, dimensions or bytes differ between the runs, or an empty string.
std::string first_different(const runtime::TensorMap& first, const runtime::TensorMap& second) {
  for (const auto& [name, tensor] : first) {
    const auto found = second.find(name);
    if (found == second.end() || found->second.dims != tensor.dims || found->second.type != tensor.type ||
        found->second.bytes.view() != tensor.bytes.view()) {
      return name;
    }
  }
  return "";
}

/// The state that all requests for a compiled model share: whether its first run was repeated.
struct Repetition {
  std::string source;
  std::string engine;
  std::atomic<bool> is_done = false;
};

class RepeatedModel final : public runtime::CompiledModel, public runtime::KeepsOutputs {
 public:
  RepeatedModel(std::shared_ptr<Repetition> repetition, std::unique_ptr<runtime::CompiledModel> model)
      : repetition_(std::move(repetition)), model_(std::move(model)) {}

  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> new_request() const override {
    return std::make_unique<RepeatedModel>(repetition_, model_->new_request());
  }

  using runtime::CompiledModel::run;
  void run(const runtime::TensorMap& inputs,
           const std::function<void(const runtime::TensorMap& outputs)>& look) override {
    if (!repetition_->is_done) repeat(inputs);
    model_->run(inputs, look);
  }

  [[nodiscard]] runtime::TensorMap run_and_keep(const runtime::TensorMap& inputs) override {
    if (!repetition_->is_done) repeat(inputs);
    auto* keeps = dynamic_cast<runtime::KeepsOutputs*>(model_.get());
    return keeps != nullptr ? keeps->run_and_keep(inputs) : model_->run(inputs);
  }

 private:
  void repeat(const runtime::TensorMap& inputs) {
    const runtime::TensorMap first = model_->run(inputs);
    std::string different;
    model_->run(inputs, [&](const runtime::TensorMap& second) { different = first_different(first, second); });
    if (!different.empty()) {
      throw Unstable(fmt::format("{}: {} computed different bits of output '{}' from the same inputs in a second run",
                                 repetition_->source, repetition_->engine, different));
    }
    repetition_->is_done = true;
  }

  std::shared_ptr<Repetition> repetition_;
  std::unique_ptr<runtime::CompiledModel> model_;
};

class RepeatingEngine final : public runtime::Engine {
 public:
  explicit RepeatingEngine(const runtime::Engine& engine) : engine_(engine) {}

  using runtime::Engine::compile;
  [[nodiscard]] std::string_view name() const override { return engine_.name(); }
  [[nodiscard]] bool can_run() const override { return engine_.can_run(); }

  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const onnx::Model& model,
                                                                const runtime::CompileOptions& options) const override {
    std::unique_ptr<runtime::CompiledModel> compiled = engine_.compile(model, options);
    if (!random_values(model).empty()) return compiled;
    auto repetition = std::make_shared<Repetition>();
    repetition->source = model.source;
    repetition->engine = engine_.name();
    return std::make_unique<RepeatedModel>(std::move(repetition), std::move(compiled));
  }

  [[nodiscard]] runtime::TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    return engine_.evaluate_constant_graph(model);
  }

 private:
  const runtime::Engine& engine_;
};

}  // namespace

std::unique_ptr<runtime::Engine> make_repeating_engine(const runtime::Engine& engine) {
  return std::make_unique<RepeatingEngine>(engine);
}

}  // namespace graft::verify
