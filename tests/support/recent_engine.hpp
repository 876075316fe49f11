// An engine that keeps recently compiled models, for tests that compile the same models repeatedly.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "onnx/onnx_io.hpp"
#include "runtime/engine.hpp"

namespace graft::test {

/// Runs models in another engine and keeps the compiled models: a model that was compiled before is not compiled again.
class RecentEngine final : public runtime::Engine {
 public:
  /// `engine` has to outlive this object. `most`: maximum number of kept models; each has its own threads and memory.
  explicit RecentEngine(const runtime::Engine& engine, std::size_t most = 32) : engine_(engine), most_(most) {}

  using Engine::compile;

  [[nodiscard]] std::string_view name() const override { return engine_.name(); }
  [[nodiscard]] bool can_run() const override { return engine_.can_run(); }
  [[nodiscard]] runtime::TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    return engine_.evaluate_constant_graph(model);
  }

  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const onnx::Model& model,
                                                                const runtime::CompileOptions& options) const override {
    std::string key = text_of(options) + serialize_onnx(model);
    const std::scoped_lock lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) { return kept->key == key; });
    std::shared_ptr<Kept> recent;
    if (found != kept_.end()) {
      recent = *found;
      kept_.erase(found);
    } else {
      recent = std::make_shared<Kept>();
      recent->key = std::move(key);
      recent->model = engine_.compile(model, options);
    }
    kept_.push_front(recent);
    if (kept_.size() > most_) kept_.pop_back();
    return recent->model->new_request();
  }

 private:
  struct Kept {
    std::string key;
    std::unique_ptr<runtime::CompiledModel> model;
  };

  static std::string text_of(const runtime::CompileOptions& options) {
    std::string text = std::to_string(static_cast<int>(options.kernels)) + ' ' + std::to_string(options.threads) + ' ' +
                       std::to_string(options.streams) + (options.round_inside ? " rounded" : "");
    for (const std::string& name : options.extra_outputs) text += '\n' + name;
    return text + '\0';
  }

  const runtime::Engine& engine_;
  std::size_t most_;
  mutable std::mutex mutex_;
  mutable std::deque<std::shared_ptr<Kept>> kept_;  // the most recent first
};

}  // namespace graft::test
