// Runs parts of a model on the CPU, so that any of its tensors can be looked at without keeping all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/figures.hpp"
#include "verify/noisy_model.hpp"

namespace graft::verify {

/// Tensors, and why they cannot be looked at.
using Refusals = std::unordered_map<const onnx::Value*, std::string>;

/// A copy of a model, whose inputs with a default are constants. f16 and bf16 tensors are rounded where they are made.
class PartialRuns {
 public:
  PartialRuns(const runtime::Engine& engine, const onnx::Model& model, runtime::OperatorKernels kernels, int threads);

  /// Finds types and sizes of all tensors for these inputs. Where they contradict each other the model's own message
  /// comes when it is run.
  void infer(const runtime::TensorMap& inputs);
  /// The same for several runs: an input whose sizes differ between them stays as it is declared.
  void infer(std::span<const runtime::TensorMap> runs);

  [[nodiscard]] const onnx::Model& model() const { return model_; }

  /// What these tensors of the model need, compiled.
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const std::vector<const onnx::Value*>& outputs) const;
  /// These tensors of the model for its inputs; what they do not need is not run.
  [[nodiscard]] runtime::TensorMap run(const std::vector<const onnx::Value*>& outputs,
                                       const runtime::TensorMap& inputs) const;
  /// The same without the tensors that cannot be looked at: the model runs, and does not when they are returned. Why
  /// goes to `refused`. Throws Error where it does not run by itself.
  [[nodiscard]] runtime::TensorMap run_what_can_be(const std::vector<const onnx::Value*>& outputs,
                                                   const runtime::TensorMap& inputs, Refusals& refused) const;
  /// A part that was made of it.
  [[nodiscard]] runtime::TensorMap run(const onnx::Model& part, const runtime::TensorMap& inputs) const;

  /// Runs tensors or a part with rounding noise in an engine: shows the tensors of each draw, and nothing where the
  /// engine does not run them with noise.
  void run_noisy(const runtime::Engine& engine, const std::vector<const onnx::Value*>& outputs,
                 const runtime::TensorMap& inputs, const LookAtDraw& look) const;
  void run_noisy(const runtime::Engine& engine, const onnx::Model& part, const runtime::TensorMap& inputs,
                 const LookAtDraw& look) const;
  [[nodiscard]] const runtime::Engine& engine() const { return *engine_; }

  /// One run for the sizes of these tensors, as far as they do not follow from the inputs' shapes alone: what a
  /// detector keeps. `bytes_of` knows them from then on.
  void measure_sizes(const std::vector<const onnx::Value*>& values, const runtime::TensorMap& inputs);
  [[nodiscard]] std::int64_t bytes_of(const onnx::Value& value) const;

  /// The values from `next` on that are kept at once in so many bytes, at least one; `next` is what follows them.
  [[nodiscard]] std::vector<const onnx::Value*> next_group(const std::vector<const onnx::Value*>& values,
                                                           std::size_t& next, std::int64_t memory) const;

  /// Looks at each of these tensors, once for each run. They are kept in groups of so many bytes; `progress` is called
  /// before each group, and a group is compiled once.
  void visit(const std::vector<const onnx::Value*>& values, std::span<const runtime::TensorMap> runs,
             std::int64_t memory, const std::function<void(const onnx::Value&, const onnx::TensorData&)>& visitor,
             const std::function<void(std::size_t done, std::size_t total)>& progress = {},
             Refusals* refused = nullptr) const;

  /// What is in them; in those that can be looked at, where `refused` is given.
  [[nodiscard]] std::unordered_map<const onnx::Value*, TensorRange> ranges(
      const std::vector<const onnx::Value*>& values, const runtime::TensorMap& inputs, std::int64_t memory,
      const std::function<void(std::size_t done, std::size_t total)>& progress = {}, Refusals* refused = nullptr) const;

 private:
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const onnx::Model& part) const;

  const runtime::Engine* engine_;
  runtime::OperatorKernels kernels_;
  int threads_;
  onnx::Model model_;
  std::unordered_map<const onnx::Value*, std::int64_t> sizes_;  ///< In bytes, of those that were measured.
};

/// Of the tensor; an estimate, where the size is not known before it is run.
[[nodiscard]] std::int64_t bytes_of(const onnx::Value& value);

}  // namespace graft::verify
