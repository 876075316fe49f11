// The page of `graft inspect --report`: the network with a verdict on each node.
#pragma once

#include <string>
#include <vector>

#include "graft/report/inspect.hpp"
#include "present/html/report.hpp"

namespace graft::present {

/// Adds the kinds of verdicts and the graphs of a model. Returns a table of all nodes except native constants. `nodes`
/// has the verdicts on the nodes of `graph`. `by_rules`: TensorRT was not run. `release`: the title of the requested
/// release, or empty.
[[nodiscard]] html::Table add_verdicts(html::Report& report, const report::ModelGraph& graph,
                                       const std::vector<report::NodeSupport>& nodes, bool by_rules,
                                       const std::string& release, const std::string& title);

[[nodiscard]] html::Report inspect_page(const report::InspectReport& report);

}  // namespace graft::present
