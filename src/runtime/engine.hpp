// The interface of the engines that run models on the CPU. Proofs, comparisons and calibration receive an engine and do
// not depend on a particular one.
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

/// The implementation that computes Graft's own operators.
enum class OperatorKernels : std::uint8_t {
  /// The operator runs as its ONNX function, inlined. An operator without a function runs its own CPU kernel.
  functions,
  /// The operator runs its own CPU kernel in the types that the model declares, so that f16 results are rounded.
  own,
  /// The operator runs its own CPU kernel. If the kernel supports it, f32 replaces f16 and bf16, as in the surrounding
  /// nodes.
  own_in_f32,
};

struct CompileOptions {
  OperatorKernels kernels = OperatorKernels::functions;
  /// Inner values of the main graph to return in addition to the outputs.
  std::vector<std::string> extra_outputs = {};
  int threads = 0;  ///< Number of threads; 0 means one per core.
  int streams = 1;  ///< The number of runs that share the threads. See CompiledModel::new_request.
  /// Whether f16 and bf16 tensors are rounded after every node that computes one, as on a device. Otherwise they are
  /// rounded only if they are outputs of the model.
  bool round_inside = false;
  /// Called several times a second while a process of an engine compiles or runs the model. If it returns true, the
  /// call throws Stopped, and the process computes the abandoned run to its end. If it is empty, calls are not stopped.
  /// It must stay valid as long as the compiled model.
  std::function<bool()> should_stop = {};
};

/// Thrown by a compilation or a run that CompileOptions::should_stop ended. It is not an Error, because passes and
/// proofs catch Error and continue.
struct Stopped {};

/// A model that can be run repeatedly, with different shapes where its inputs are dynamic, but not from two threads at
/// once. Inputs that have a default in the file are constants.
class CompiledModel {
 public:
  CompiledModel() = default;
  CompiledModel(const CompiledModel&) = delete;
  CompiledModel& operator=(const CompiledModel&) = delete;
  virtual ~CompiledModel() = default;

  /// Returns another handle to the same compiled model, which shares its weights and can run at the same time in
  /// another thread. At most CompileOptions::streams runs proceed in parallel, each with its share of the threads;
  /// further runs wait.
  [[nodiscard]] virtual std::unique_ptr<CompiledModel> new_request() const = 0;

  /// Runs the model on `inputs`, which contain every input by name, and calls `look` with every output and extra output
  /// by name, in its declared type. The outputs are in the engine's memory and are valid only until `look` returns.
  /// Throws Error for a missing or unknown input, and for an input of the wrong type, rank or fixed dimension; the
  /// message names the input, and the type and shape that were found and that are allowed.
  virtual void run(const TensorMap& inputs, const std::function<void(const TensorMap& outputs)>& look) = 0;

  /// Runs the model and returns copies of the outputs.
  [[nodiscard]] TensorMap run(const TensorMap& inputs);
};

/// An engine that runs ONNX models on the CPU. Models are computed in f32 (an engine may compute f64 in f64); f16, bf16
/// and f64 tensors are rounded once, when they are returned as outputs. The methods may be called from several threads.
class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  /// Returns the name and version, for example "OpenVINO 2026.4.1".
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// Returns whether the engine runs models. False for the null engine, with which nothing can be proven or compared.
  [[nodiscard]] virtual bool can_run() const { return true; }

  /// Returns an engine that checks every run of this engine with a second engine, or null if there is no second engine.
  /// Returns this engine itself if its runs are already checked.
  [[nodiscard]] virtual const Engine* checked() const { return nullptr; }
  /// Returns this engine without checks by a second engine.
  [[nodiscard]] virtual const Engine& unchecked() const { return *this; }
  /// Returns a second engine with which a result of this engine can be confirmed, or null if no such engine exists.
  [[nodiscard]] virtual const Engine* second() const { return nullptr; }

  /// Compiles a model. Throws Error naming the node that the engine refuses, with the engine's message.
  [[nodiscard]] virtual std::unique_ptr<CompiledModel> compile(const onnx::Model& model,
                                                               const CompileOptions& options) const = 0;
  [[nodiscard]] std::unique_ptr<CompiledModel> compile(const onnx::Model& model) const { return compile(model, {}); }

  /// Computes a model that has no inputs. Returns every output by name, in its declared type, with exact 64-bit
  /// integers. Graft's operators are computed as their ONNX functions. Throws Error for a model with inputs, for random
  /// numbers, and for operators that the engine does not evaluate at compile time.
  [[nodiscard]] virtual TensorMap evaluate_constant_graph(const onnx::Model& model) const = 0;
};

/// Returns how a tensor differs from the type and shape of an input, in the wording of CompiledModel::run, or an empty
/// string if the tensor fits.
[[nodiscard]] std::string mismatch_of(const onnx::TensorData& tensor, onnx::ElementType type,
                                      const std::optional<Shape>& shape);

}  // namespace graft::runtime
