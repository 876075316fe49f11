// The page of `graft inspect --report`: the network with a verdict on each node.
#pragma once

#include <string>
#include <vector>

#include "graft/report/inspect.hpp"
#include "inspect/verdicts.hpp"
#include "onnx/model.hpp"
#include "present/html/report.hpp"

namespace graft::present {

/// Adds the kinds of verdicts and the model's graphs. Returns a table of all nodes except native constants. `nodes` is
/// the result of judge_nodes for `model`. `by_rules`: TensorRT was not run. `release`: the release that was named.
[[nodiscard]] html::Table add_verdicts(html::Report& report, const onnx::Model& model,
                                       const std::vector<report::NodeSupport>& nodes, bool by_rules,
                                       const std::optional<inspect::Release>& release, const std::string& title);

[[nodiscard]] html::Report inspect_page(const report::InspectReport& report);

}  // namespace graft::present
