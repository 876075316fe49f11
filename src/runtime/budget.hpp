// Limits how much the CPU engine may compute for one file, apart from the runs that the user requested. A file of a few
// bytes can declare tensors of any size, and can double a tensor again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "runtime/engine.hpp"

namespace graft::runtime {

/// An estimate of the memory and time of one run of a model.
struct RunCost {
  double bytes = 0;    ///< The largest total size of tensors that are needed at the same time, without constants.
  double seconds = 0;  ///< Time on one core, including the generation of synthetic inputs.
};

/// Returns the estimated cost of one run. Infers the sizes of all tensors from the input shapes. Tensors whose size is
/// not known before the run, and tensors after a node that contradicts its inputs, count as 0.
[[nodiscard]] RunCost estimate_cost(const onnx::Model& model,
                                    const std::map<std::string, Shape, std::less<>>& input_shapes);

/// Wraps an engine with the budget of the file that holds `model`. A run is refused with an Error, which states the
/// cost and the limit, if it takes too much memory or if all runs together take too much time. Both limits grow with
/// the bytes of the constants, and the time limit also with the number of nodes. Proofs and constant folding skip the
/// runs that are refused. `on_refusal` is called for each of them, possibly from several threads at once.
[[nodiscard]] std::unique_ptr<Engine> make_budget_engine(const Engine& engine, const onnx::Model& model,
                                                         std::function<void()> on_refusal = {});

/// Returns why the budget does not allow a run with inputs of these sizes; the run is not counted. Returns an empty
/// string if the run is allowed, or if no budget engine compiled the model. For callers that generate large inputs.
[[nodiscard]] std::string refusal_of(const CompiledModel& model,
                                     const std::map<std::string, std::vector<std::int64_t>, std::less<>>& sizes);

}  // namespace graft::runtime
