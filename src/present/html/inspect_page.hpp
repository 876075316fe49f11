// The page of `graft inspect --report`: the network with a verdict on each node.
#pragma once

#include <string>
#include <vector>

#include "graft/report/inspect.hpp"
#include "present/html/model_graph.hpp"
#include "present/html/report.hpp"

namespace graft::present {

/// The graphs of a model with verdicts, and a table of all nodes except native constants.
struct Verdicts {
  html::ModelPlaces drawn;
  html::Table table;
};

/// Adds the kinds of verdicts, the graphs of a model and the problems of its nodes. `nodes` has the verdicts on the
/// nodes of `graph`. `by_rules`: TensorRT was not run. `release`: the title of the requested release, or empty.
[[nodiscard]] Verdicts add_verdicts(html::Report& report, const report::ModelGraph& graph,
                                    const std::vector<report::NodeSupport>& nodes, bool by_rules,
                                    const std::string& release, const std::string& title);

[[nodiscard]] html::Report inspect_page(const report::InspectReport& report);

}  // namespace graft::present
