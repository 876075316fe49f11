// The CPU engine: runs any model that Graft holds, on OpenVINO.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/model.hpp"

namespace graft {

using TensorMap = std::map<std::string, TensorData, std::less<>>;

/// How Graft's own operators are calculated.
enum class OperatorKernels : std::uint8_t {
  functions,  ///< As their ONNX functions, inlined, where they have one; otherwise by the operator's own CPU kernel.
  own,        ///< By the operator's own CPU kernel.
};

/// Which of many ways to round a model's arithmetic takes; see CpuOptions::noise.
struct RoundingNoise {
  std::uint64_t draw = 0;  ///< Another number, other roundings. Not to be changed during a run.
};

struct CpuOptions {
  OperatorKernels kernels = OperatorKernels::functions;
  std::vector<std::string> extra_outputs = {};  ///< Inner values of the main graph to return as well.
  int threads = 0;                              ///< 0: as many as the machine has cores.
  int streams = 1;                              ///< How many runs share these threads: see CpuModel::beside.
  /// f16 and bf16 tensors are rounded wherever a node makes one, as a device does, not only where they leave the model.
  bool round_inside = false;
  /// Each f32 result that is rounded moves by a few of its last bits, up or down by the draw: what becomes of that in
  /// the outputs is how far the model is from itself by rounding alone.
  std::shared_ptr<RoundingNoise> noise = nullptr;
};

/// A model compiled for the CPU, in f32 arithmetic: f16, bf16 and f64 tensors are calculated in f32 and rounded once,
/// where they leave the model; integers are held in 32 bits. `run` may be called again and again, with other shapes
/// where the model's inputs are dynamic; not from two threads at once. Several CpuModels may be made and run in several
/// threads; those of one model share its weights where `beside` makes them.
///
/// Inputs that have a default in the file are constants. Limits of OpenVINO 2026.4: integers beyond 32 bits inside the
/// model are cut off without a word (an input that has them is refused); quotients, remainders, powers, matrix products
/// and reductions of integers are calculated in f32, so those beyond 2^24 are refused, but for those in a sub-graph; a
/// Loop that runs zero times is refused; text is neither taken nor returned.
class CpuModel {
 public:
  /// Throws Error naming the node that OpenVINO refuses, in OpenVINO's words.
  explicit CpuModel(const Model& model, const CpuOptions& options = {});
  ~CpuModel();
  CpuModel(CpuModel&&) noexcept;
  CpuModel& operator=(CpuModel&&) noexcept;

  /// The same compiled model with room for a run of its own, at the same time, in another thread. As many runs go side
  /// by side as CpuOptions::streams says, each with its share of the threads; more wait for each other.
  [[nodiscard]] CpuModel beside() const;

  /// Every input by name; returns every output and extra output by name, in its declared type. Throws Error for a
  /// missing or unknown input and for one of another type, rank or fixed dimension: it names the input, what was found
  /// and what is allowed.
  [[nodiscard]] TensorMap run(const TensorMap& inputs);

  /// The same run. The outputs are shown where the engine left them, and are gone when `look` returns.
  void run(const TensorMap& inputs, const std::function<void(const TensorMap& outputs)>& look);

 private:
  void infer(const TensorMap& inputs);

  struct Implementation;
  explicit CpuModel(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

/// What is wrong with a tensor as such an input, in the words of `run`; empty where nothing is.
[[nodiscard]] std::string misfit_of(const TensorData& tensor, ElementType type, const std::optional<Shape>& shape);

/// Calculates a model that has no inputs: every output by name, in its declared type, 64-bit integers exactly. Graft's
/// operators count as their functions. Throws Error for a model with inputs, for random numbers, and for what OpenVINO
/// does not calculate ahead: arithmetic in f64 for one.
[[nodiscard]] TensorMap evaluate_constant_graph(const Model& model);

}  // namespace graft
