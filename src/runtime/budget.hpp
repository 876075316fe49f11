// How much the CPU engine may compute for one file, beside the runs that the user asked for. A file of a few bytes may
// declare tensors of any size, and double one again and again.
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

/// Estimates of what one run of a model takes.
struct RunCost {
  double bytes = 0;    ///< The most that the tensors take which are needed at the same time; constants do not count.
  double seconds = 0;  ///< On one core. With the time in which synthetic inputs are made.
};

/// Infers the sizes of all tensors from those of the inputs. A tensor whose size is not known before the run counts as
/// nothing, as do those after a node that contradicts its inputs.
[[nodiscard]] RunCost estimate_cost(const onnx::Model& model,
                                    const std::map<std::string, Shape, std::less<>>& input_shapes);

/// Wraps an engine: runs for the file that holds `model` are refused with an Error, which says what they would take and
/// what is allowed, once one of them takes too much memory or all of them too much time. A larger file may take more:
/// both limits grow with the bytes of the constants, the time also with the number of nodes. Proofs and foldings leave
/// out what is refused.
[[nodiscard]] std::unique_ptr<Engine> make_budget_engine(const Engine& engine, const onnx::Model& model);

/// Returns why the budget does not allow a run with inputs of these sizes, without counting it. Empty where it does,
/// and for a model that no budget engine compiled. For callers that make large inputs.
[[nodiscard]] std::string refusal_of(const CompiledModel& model,
                                     const std::map<std::string, std::vector<std::int64_t>, std::less<>>& sizes);

}  // namespace graft::runtime
