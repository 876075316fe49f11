// Runs parts of a model on the CPU, so that each of its tensors can be inspected without keeping all of them in memory.
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
#include "verify/compare/figures.hpp"
#include "verify/judge/noisy_model.hpp"

namespace graft::verify {

/// Maps each tensor that the engine cannot return as an output to the reason.
using Refusals = std::unordered_map<const onnx::Value*, std::string>;

/// Runs the nodes of a model that compute some of its inner tensors. Works on a copy in which inputs with a default are
/// constants and f16 and bf16 tensors are rounded after the nodes that compute them.
class PartialRuns {
 public:
  PartialRuns(const runtime::Engine& engine, const onnx::Model& model, runtime::OperatorKernels kernels, int threads);

  /// Infers the types and shapes of all tensors for inputs of these sizes. A contradiction is ignored here; running the
  /// model reports it.
  void infer(const runtime::TensorMap& inputs);
  /// Infers types and shapes for several runs. An input whose sizes differ between the runs keeps its declared shape.
  void infer(std::span<const runtime::TensorMap> runs);

  [[nodiscard]] const onnx::Model& model() const { return model_; }

  /// Returns the compiled model of the nodes that compute these tensors.
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const std::vector<const onnx::Value*>& outputs) const;
  /// Returns the values of these tensors, by name, for inputs of the whole model. Nodes on which they do not depend are
  /// not run.
  [[nodiscard]] runtime::TensorMap run(const std::vector<const onnx::Value*>& outputs,
                                       const runtime::TensorMap& inputs) const;
  /// Returns, by name, the values of those of `outputs` that the engine can return as outputs. Adds the others to
  /// `refused` with the reason. Throws Error if the model does not run at all.
  [[nodiscard]] runtime::TensorMap run_what_can_be(const std::vector<const onnx::Value*>& outputs,
                                                   const runtime::TensorMap& inputs, Refusals& refused) const;
  /// Runs `part`, a model extracted from this one, and returns its outputs by name.
  [[nodiscard]] runtime::TensorMap run(const onnx::Model& part, const runtime::TensorMap& inputs) const;

  /// Runs the part of the model that computes `outputs` (or, in the other overload, the extracted model `part`) with
  /// rounding noise, and calls `look` for each noisy run. Does not call it if the engine cannot run the part with
  /// noise. `f64_noise` selects the size of the noise in f64 tensors.
  void run_noisy(const runtime::Engine& engine, const std::vector<const onnx::Value*>& outputs,
                 const runtime::TensorMap& inputs, const LookAtDraw& look,
                 F64Noise f64_noise = F64Noise::of_engine) const;
  void run_noisy(const runtime::Engine& engine, const onnx::Model& part, const runtime::TensorMap& inputs,
                 const LookAtDraw& look, F64Noise f64_noise = F64Noise::of_engine) const;
  [[nodiscard]] const runtime::Engine& engine() const { return *engine_; }

  /// Runs the model once and stores the sizes of those tensors whose sizes depend on the values of the inputs, such as
  /// the boxes that a detector keeps. bytes_of() then uses the stored sizes.
  void measure_sizes(const std::vector<const onnx::Value*>& values, const runtime::TensorMap& inputs);
  /// Returns the size of a tensor in bytes: the one stored by measure_sizes(), or an estimate.
  [[nodiscard]] std::int64_t bytes_of(const onnx::Value& value) const;

  /// Returns the next values, from index `next` on, that together have at most `memory` bytes, but at least one value.
  /// Advances `next` past them.
  [[nodiscard]] std::vector<const onnx::Value*> next_group(const std::vector<const onnx::Value*>& values,
                                                           std::size_t& next, std::int64_t memory) const;

  /// Calls `visitor` with the value of each of these tensors, once per run. At most about `memory` bytes are held at
  /// once: the tensors are divided into groups, each of which is compiled once. `progress` is called before each group.
  /// If `refused` is not null, tensors that the engine cannot return are skipped and added to it; otherwise they cause
  /// an Error.
  void visit(const std::vector<const onnx::Value*>& values, std::span<const runtime::TensorMap> runs,
             std::int64_t memory, const std::function<void(const onnx::Value&, const onnx::TensorData&)>& visitor,
             const std::function<void(std::size_t done, std::size_t total)>& progress = {},
             Refusals* refused = nullptr) const;

  /// Returns the ranges of these tensors in one run. At most about `memory` bytes of tensors are held at once;
  /// `progress`, if set, is called before each group of tensors. If `refused` is not null, tensors that the engine
  /// cannot return are left out and added to it; otherwise they cause an Error.
  [[nodiscard]] std::unordered_map<const onnx::Value*, TensorRange> ranges(
      const std::vector<const onnx::Value*>& values, const runtime::TensorMap& inputs, std::int64_t memory,
      const std::function<void(std::size_t done, std::size_t total)>& progress = {}, Refusals* refused = nullptr) const;

 private:
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const onnx::Model& part) const;

  const runtime::Engine* engine_;
  runtime::OperatorKernels kernels_;
  int threads_;
  onnx::Model model_;
  std::unordered_map<const onnx::Value*, std::int64_t> sizes_;  ///< Measured sizes in bytes.
};

/// Returns the size in bytes that a tensor would have as f32, or an estimate if its shape is not fixed.
[[nodiscard]] std::int64_t bytes_of(const onnx::Value& value);

}  // namespace graft::verify
