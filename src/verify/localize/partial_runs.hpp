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

/// Tensors that cannot be returned, with the reason.
using Refusals = std::unordered_map<const onnx::Value*, std::string>;

/// Runs parts of a copy of a model, whose inputs with a default are constants. f16 and bf16 tensors are rounded after
/// the nodes that compute them.
class PartialRuns {
 public:
  PartialRuns(const runtime::Engine& engine, const onnx::Model& model, runtime::OperatorKernels kernels, int threads);

  /// Infers types and sizes of all tensors for these inputs. If they contradict the model, the error is reported when
  /// the model runs.
  void infer(const runtime::TensorMap& inputs);
  /// Infers types and sizes for several runs: an input whose sizes differ between the runs keeps its declared shape.
  void infer(std::span<const runtime::TensorMap> runs);

  [[nodiscard]] const onnx::Model& model() const { return model_; }

  /// Compiles the part of the model that computes these tensors.
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const std::vector<const onnx::Value*>& outputs) const;
  /// Returns these tensors for the model's inputs. Nodes that they do not depend on are not run.
  [[nodiscard]] runtime::TensorMap run(const std::vector<const onnx::Value*>& outputs,
                                       const runtime::TensorMap& inputs) const;
  /// Returns these tensors, except those that cannot be returned although the model itself runs; their reasons are
  /// added to `refused`. Throws Error if the model itself does not run.
  [[nodiscard]] runtime::TensorMap run_what_can_be(const std::vector<const onnx::Value*>& outputs,
                                                   const runtime::TensorMap& inputs, Refusals& refused) const;
  /// Runs a part that was extracted from the model.
  [[nodiscard]] runtime::TensorMap run(const onnx::Model& part, const runtime::TensorMap& inputs) const;

  /// Runs tensors or a part with rounding noise in an engine. Calls `look` for each draw, or not at all if the engine
  /// does not run them with noise.
  void run_noisy(const runtime::Engine& engine, const std::vector<const onnx::Value*>& outputs,
                 const runtime::TensorMap& inputs, const LookAtDraw& look,
                 F64Noise f64_noise = F64Noise::of_engine) const;
  void run_noisy(const runtime::Engine& engine, const onnx::Model& part, const runtime::TensorMap& inputs,
                 const LookAtDraw& look, F64Noise f64_noise = F64Noise::of_engine) const;
  [[nodiscard]] const runtime::Engine& engine() const { return *engine_; }

  /// Measures in one run the sizes of those tensors that do not follow from the shapes of the inputs alone, such as the
  /// boxes that a detector keeps. `bytes_of` uses the measured sizes.
  void measure_sizes(const std::vector<const onnx::Value*>& values, const runtime::TensorMap& inputs);
  /// Returns the size of a tensor in bytes, measured or estimated.
  [[nodiscard]] std::int64_t bytes_of(const onnx::Value& value) const;

  /// Returns the values from `next` on that fit into `memory` bytes, at least one; advances `next` past them.
  [[nodiscard]] std::vector<const onnx::Value*> next_group(const std::vector<const onnx::Value*>& values,
                                                           std::size_t& next, std::int64_t memory) const;

  /// Calls `visitor` with each of these tensors, once per run. The tensors are kept in groups of `memory` bytes; each
  /// group is compiled once, and `progress` is called before each group. With `refused`, tensors that cannot be
  /// returned are skipped and added to it.
  void visit(const std::vector<const onnx::Value*>& values, std::span<const runtime::TensorMap> runs,
             std::int64_t memory, const std::function<void(const onnx::Value&, const onnx::TensorData&)>& visitor,
             const std::function<void(std::size_t done, std::size_t total)>& progress = {},
             Refusals* refused = nullptr) const;

  /// Returns the ranges of these tensors. With `refused`, tensors that cannot be returned are left out and added to it.
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

/// Returns the size of a tensor as f32 in bytes, or an estimate if its shape is not fixed.
[[nodiscard]] std::int64_t bytes_of(const onnx::Value& value);

}  // namespace graft::verify
