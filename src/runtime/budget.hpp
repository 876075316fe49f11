// Limits how much the CPU engine may compute for one file, before anything is allocated. The limits are needed because
// a file of a few bytes can declare tensors of any size, or double a tensor repeatedly.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graft/error.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"

namespace graft::runtime {

/// The largest number of elements of a tensor, which is TensorRT's limit. No model with a larger tensor is run.
inline constexpr std::int64_t most_elements = (std::int64_t{1} << 31) - 1;

/// Thrown if the engine of make_budget_engine, make_limited_engine or make_comparison_engine refuses a compilation or a
/// run because of its sizes.
class OverLimit : public Error {
 public:
  explicit OverLimit(const std::string& text) : Error(text) {}
};

/// Thrown if the engine of make_budget_engine refuses a run. Another engine may then run the model.
class OverBudget : public OverLimit {
 public:
  explicit OverBudget(const std::string& text) : OverLimit(text) {}
};

/// An estimate of the memory and time of one run of a model.
struct RunCost {
  double bytes = 0;         ///< The largest total size of tensors that are needed at the same time, without constants.
  double seconds = 0;       ///< Time on one core, including the generation of synthetic inputs.
  double elements = 0;      ///< The number of elements of the largest tensor. An unknown size counts as 1.
  double output_bytes = 0;  ///< The total size of the outputs.
  double output_elements = 0;  ///< The number of elements of all outputs.
  /// Names a Loop that runs forever, such as "node 'loop' (Loop)"; empty if the model has no such Loop.
  std::string endless = {};
  /// A description of the largest tensor, such as "node 'pad' (Pad) computes 'y' of 2 x 4096 elements".
  std::string largest;
};

/// Returns the estimated cost of one run. Infers the sizes of all tensors from the input shapes. Tensors whose size is
/// not known before the run, and tensors after a node that contradicts its inputs, count as 0.
[[nodiscard]] RunCost estimate_cost(const onnx::Model& model,
                                    const std::map<std::string, Shape, std::less<>>& input_shapes);

/// Returns an engine that runs models on `engine` within limits for `model` and the models that are converted from it.
/// It throws OverBudget, which states the cost and the limit, if a run takes too much memory or if all runs together
/// take too much time. Both limits grow with the bytes of the constants in `model`, and the time limit also with the
/// number of nodes. Proofs and constant folding skip the runs that are refused.
[[nodiscard]] std::unique_ptr<Engine> make_budget_engine(const Engine& engine, const onnx::Model& model);

/// Returns an engine that runs models on `engine`, with inputs of a caller. It throws OverLimit for a model with a
/// tensor of more than most_elements: at compilation if the tensor has this size for all inputs, otherwise before the
/// run.
[[nodiscard]] std::unique_ptr<Engine> make_limited_engine(const Engine& engine);

/// Returns an engine for comparisons of `model`, and of models converted from it, on inputs that Graft generates. It
/// runs models on `engine`, but throws OverLimit for models that make_limited_engine refuses, and for runs that take
/// too much memory or time. Both limits are larger than those of make_budget_engine, and each run has its own time
/// limit. `given` contains the shapes that the caller set, by input name; inputs without a shape there get sizes that
/// Graft chooses, and less memory is allowed then.
[[nodiscard]] std::unique_ptr<Engine> make_comparison_engine(
    const Engine& engine, const onnx::Model& model,
    const std::map<std::string, std::vector<std::int64_t>, std::less<>>& given);

/// Returns why the budget does not allow a run with inputs of these sizes, or an empty string if it allows the run or
/// if no budget engine compiled the model. The run is not counted. Meant for callers that generate large inputs.
[[nodiscard]] std::string refusal_of(const CompiledModel& model,
                                     const std::map<std::string, std::vector<std::int64_t>, std::less<>>& sizes);

}  // namespace graft::runtime
