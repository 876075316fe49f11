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

using report::advice_on_fault;
using report::computed_wrongly;
using report::is_bad;
using report::is_computed_wrongly;
using report::is_open;
using report::Judge;
using report::NodeSupport;
using report::runs;
using report::Support;

/// The changes that `graft convert` would make to a model.
struct Forecast {
  /// A description of the replacement for each node that is rewritten.
  std::map<NodeRef, std::string, onnx::ByName> becomes;
  std::set<NodeRef, onnx::ByName> stays;  ///< Nodes whose replacement with a native layer was tried and rejected.
};

/// Returns the name that equals `op_type`, or differs from it by a typing error, among Graft's operators and the
/// plugins that they replace; nothing if no name is similar.
[[nodiscard]] std::optional<std::string> nearest_own_operator(const std::string& op_type);

/// Returns the verdict on every node, in the order of Graph::for_each_node() (sub-graphs included), for a release of
/// TensorRT. The default forecast assumes that the model has been converted already.
[[nodiscard]] std::vector<NodeSupport> judge_nodes(const onnx::Model& model, const Forecast& forecast = {},
                                                   const Release& release = newest_measured_release());

}  // namespace graft::inspect
