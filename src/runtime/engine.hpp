// What runs models on the CPU. Proofs, comparisons and calibration are given an engine and know none by name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"

namespace graft::runtime {

using TensorMap = std::map<std::string, onnx::TensorData, std::less<>>;

/// How Graft's own operators are computed.
enum class OperatorKernels : std::uint8_t {
  functions,   ///< As their ONNX functions, inlined, where they have one; otherwise by the operator's own CPU kernel.
  own,         ///< By the operator's own CPU kernel, in the types that the model declares: results in f16 are rounded.
  own_in_f32,  ///< By the same in f32 in the place of f16 and bf16, where it takes that, like the nodes around it.
};

struct CompileOptions {
  OperatorKernels kernels = OperatorKernels::functions;
  std::vector<std::string> extra_outputs = {};  ///< Inner values of the main graph to return as well.
  int threads = 0;                              ///< 0: as many as the machine has cores.
  int streams = 1;                              ///< How many runs share these threads: see CompiledModel::beside.
  /// f16 and bf16 tensors are rounded wherever a node makes one, as a device does, not only where they leave the model.
  bool round_inside = false;
};

/// A model that can be run again and again, with other shapes where its inputs are dynamic; not from two threads at
/// once. Inputs that have a default in the file are constants.
class CompiledModel {
 public:
  CompiledModel() = default;
  CompiledModel(const CompiledModel&) = delete;
  CompiledModel& operator=(const CompiledModel&) = delete;
  virtual ~CompiledModel() = default;

  /// The same compiled model with room for a run of its own, at the same time, in another thread; the weights are
  /// shared. As many runs go side by side as CompileOptions::streams says, each with its share of the threads; more
  /// wait for each other.
  [[nodiscard]] virtual std::unique_ptr<CompiledModel> new_request() const = 0;

  /// Takes every input by name and shows every output and extra output by name, in its declared type, where the engine
  /// left it: they are gone when `look` returns. Throws Error for a missing or unknown input and for one of another
  /// type, rank or fixed dimension: it names the input, what was found and what is allowed.
  virtual void run(const TensorMap& inputs, const std::function<void(const TensorMap& outputs)>& look) = 0;

  /// The same run, with copies of the outputs.
  [[nodiscard]] TensorMap run(const TensorMap& inputs);
};

/// Models are computed in f32 (f64 perhaps in f64): f16, bf16 and f64 tensors are rounded once, where they leave the
/// model. May be called from several threads.
class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  /// "OpenVINO 2026.4.1".
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// False for the one that runs nothing: then nothing can be proven or compared.
  [[nodiscard]] virtual bool can_run() const { return true; }

  /// The same with each run checked by a second engine; null where there is none. It is this one where that is so.
  [[nodiscard]] virtual const Engine* checked() const { return nullptr; }
  /// The same without such checks.
  [[nodiscard]] virtual const Engine& unchecked() const { return *this; }
  /// Another engine, which confirms what this one measures; null where there is none.
  [[nodiscard]] virtual const Engine* second() const { return nullptr; }

  /// Throws Error naming the node that the engine refuses, in its words.
  [[nodiscard]] virtual std::unique_ptr<CompiledModel> compile(const onnx::Model& model,
                                                               const CompileOptions& options) const = 0;
  [[nodiscard]] std::unique_ptr<CompiledModel> compile(const onnx::Model& model) const { return compile(model, {}); }

  /// Computes a model that has no inputs: every output by name, in its declared type, 64-bit integers exactly.
  /// Graft's operators count as their functions. Throws Error for a model with inputs, for random numbers, and for what
  /// the engine does not compute ahead.
  [[nodiscard]] virtual TensorMap evaluate_constant_graph(const onnx::Model& model) const = 0;
};

/// What is wrong with a tensor as such an input, in the words of CompiledModel::run; empty where nothing is.
[[nodiscard]] std::string mismatch_of(const onnx::TensorData& tensor, onnx::ElementType type,
                                      const std::optional<Shape>& shape);

}  // namespace graft::runtime
