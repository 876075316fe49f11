// Judges by rule how each node of a model runs in TensorRT.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/inspect.hpp"
#include "inspect/tensorrt_release.hpp"
#include "onnx/model.hpp"
#include "onnx/node_ref.hpp"

namespace graft::inspect {

using report::is_bad;
using report::is_open;
using report::Judge;
using report::NodeSupport;
using report::runs;
using report::Support;

/// Whether only a run of TensorRT (--probe) leads to that verdict.
[[nodiscard]] constexpr bool is_by_tensorrt(Support verdict) {
  return verdict == Support::not_asked || verdict > Support::unsupported;
}

/// Returns a description of a verdict, such as "TensorRT runs it as it is". With `by_rules`, TensorRT was not run on
/// the model, and the description claims only what the rules say. `release` is the release that the user named; the
/// installed TensorRT may be another one.
[[nodiscard]] std::string meaning_of(Support verdict, bool by_rules = false,
                                     const std::optional<Release>& release = std::nullopt);

inline constexpr auto advice_on_fault = "correct the node in the program that wrote the model";

/// The NodeSupport::cause of a node that the release accepts and computes wrongly.
inline constexpr auto computed_wrongly = "computed wrongly";

/// Returns whether TensorRT builds the node and computes it wrongly. A message of TensorRT about the node says that it
/// refuses the node, and so computes nothing.
[[nodiscard]] bool is_computed_wrongly(const NodeSupport& node);

/// Returns what TensorRT does with nodes that are left to the host, `wrong` of which it computes wrongly: "TensorRT
/// does not run", "TensorRT computes wrongly" or "TensorRT does not run or computes wrongly".
[[nodiscard]] std::string_view problem_text(std::size_t nodes, std::size_t wrong);

/// The changes that `graft convert` will make.
struct Forecast {
  /// Describes, for each node that is rewritten, the replacement.
  std::map<NodeRef, std::string, onnx::ByName> becomes;
  std::set<NodeRef, onnx::ByName> stays;  ///< Operators whose native form was tried and rejected.
};

/// Returns the operator, or the plugin that an operator stands in for, whose name equals `op_type` or differs by a
/// slip.
[[nodiscard]] std::optional<std::string> nearest_own_operator(const std::string& op_type);

/// Returns the verdict on every node, also in sub-graphs, for a release of TensorRT. Without a forecast, the model is
/// taken to be converted already.
[[nodiscard]] std::vector<NodeSupport> judge_nodes(const onnx::Model& model, const Forecast& forecast = {},
                                                   const Release& release = newest_measured_release());

}  // namespace graft::inspect
