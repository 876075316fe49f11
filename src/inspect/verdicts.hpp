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
