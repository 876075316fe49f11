// Verdicts are in the order in which ModelGraph::for_each_node visits the nodes.
#include "present/html/inspect_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/bytes_text.hpp"
#include "present/html/model_graph.hpp"
#include "present/html/page.hpp"
#include "present/text/inspect_text.hpp"
#include "present/text/model_text.hpp"
#include "present/text/next_steps_text.hpp"
#include "present/text/verdict_text.hpp"

namespace graft::present {
namespace {

html::Kind kind_of(report::Support verdict, bool by_rules, const std::string& release) {
  html::Kind kind{.key = std::string(to_string(verdict)),
                  .mark = {},
                  .title = std::string(to_string(verdict)),
                  .meaning = meaning_of(verdict, by_rules, release),
                  .tone = html::Tone::plain,
                  .is_problem = report::is_bad(verdict)};
  switch (verdict) {
    case report::Support::native: kind.mark = "✓"; break;
    case report::Support::lowered:
      kind.mark = "↧";
      kind.tone = html::Tone::violet;
      break;
    case report::Support::plugin:
      kind.mark = "◆";
      kind.tone = html::Tone::green;
      break;
    case report::Support::unknown:
    case report::Support::not_asked:
      kind.mark = "?";
      kind.tone = html::Tone::amber;
      break;
    default:
      kind.mark = "✕";
      kind.tone = html::Tone::red;
      break;
  }
  return kind;
}

html::Table table_of(const std::vector<report::NodeSupport>& nodes,
                     const std::vector<std::optional<html::Place>>& places,
                     const std::vector<report::NodeCost>& costs) {
  using Type = html::Column::Type;
  html::Table table{.title = "Nodes",
                    .note = cost_note(),
                    .columns = {{"node", Type::node},
                                {"operator", Type::code},
                                {"verdict", Type::kind, "how TensorRT will run it"},
                                {"why", Type::text},
                                {"what to do", Type::text}}};
  for (html::Column& column : cost_columns()) table.columns.push_back(std::move(column));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const report::NodeSupport& node = nodes[i];
    // A constant is drawn as part of the nodes that read it.
    if (!places[i] && node.op == "Constant" && node.support == report::Support::native) continue;
    std::vector<html::Cell>& row = table.rows.emplace_back();
    row = {node_cell(places[i], node.node.name), node.op, std::string(to_string(node.support)), node.reason,
           node.advice};
    for (html::Cell& cell : cost_cells(costs[i])) row.push_back(std::move(cell));
  }
  return table;
}

}  // namespace

Verdicts add_verdicts(html::Report& report, const report::ModelGraph& graph,
                      const std::vector<report::NodeSupport>& nodes, bool by_rules, const std::string& release,
                      const std::string& title) {
  for (const report::Support verdict : report::all_supports) {
    const bool is_there =
        std::any_of(nodes.begin(), nodes.end(), [&](const report::NodeSupport& n) { return n.support == verdict; });
    if (is_there || (!report::is_by_tensorrt(verdict) && !report::is_open(verdict)))
      report.kinds.push_back(kind_of(verdict, by_rules, release));
  }
  const html::ModelPlaces drawn = html::add_graphs(report, graph, title);
  const std::vector<std::optional<html::Place>>& places = drawn.nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!places[i]) continue;
    html::Node& node = report.graphs[places[i]->graph].nodes[places[i]->node];
    node.kind = to_string(nodes[i].support);
    node.reason = nodes[i].reason;
    node.advice = nodes[i].advice;
  }
  add_problems(report, nodes, places);
  std::vector<report::NodeCost> costs;
  graph.for_each_node([&](const report::ModelNode& node) { costs.push_back(node.cost); });
  return {.drawn = drawn, .table = table_of(nodes, places, costs)};
}

namespace {

/// Adds the groups of nodes that a conversion fuses, and returns a table of them.
html::Table add_fusions(html::Report& page, const html::ModelPlaces& drawn,
                        const std::vector<report::Fusion>& fusions) {
  using Type = html::Column::Type;
  html::Table table{.title = "Nodes that graft convert fuses",
                    .note = "Each row is a group of nodes that one operator replaces.",
                    .columns = {{"first node", Type::node},
                                {"nodes", Type::number},
                                {"operators", Type::text},
                                {"become", Type::code},
                                {"runs as", Type::text},
                                {"why", Type::text},
                                {"pass", Type::code}}};
  for (const report::Fusion& fusion : fusions) {
    html::Group group{.title = operator_of(fusion), .note = {}, .nodes = {}};
    group.note = fmt::format("graft convert replaces these {} with {}{}", count_text(fusion.nodes.size(), "node"),
                             fusion.replacement, fusion.plugin.empty() ? "" : ", as a plugin: " + fusion.plugin);
    std::string operators;
    for (const NodeRef& node : fusion.nodes) {
      operators += (operators.empty() ? "" : ", ") + node.op;
      const auto found = drawn.by_id.find(node.id);
      if (found != drawn.by_id.end()) group.nodes.push_back(found->second);
    }
    table.rows.push_back({group.nodes.empty() ? html::Cell(fusion.nodes.front().name) : html::Cell(group.nodes.front()),
                          static_cast<double>(fusion.nodes.size()), operators, fusion.replacement,
                          std::string(fusion.plugin.empty() ? "native layers" : "plugin"),
                          fusion.plugin.empty() ? fusion.reason : fusion.plugin, fusion.pass});
    page.groups.push_back(std::move(group));
  }
  return table;
}

}  // namespace

html::Report inspect_page(const report::InspectReport& report) {
  html::Report page = new_model_report("inspect", report.file.string());
  const report::ModelGraph graph = report.model.graph();
  const std::string release = report.release_title();
  if (const std::string origin = origin_text(report.origin); !origin.empty()) page.summary.push_back({"read", origin});
  if (!release.empty()) page.summary.push_back({"release", release});
  page.summary.push_back({"judged by", answered_by(report)});
  page.summary.push_back({"opset", fmt::format("{}", report.opset)});
  page.summary.push_back({"nodes", nodes_text(report.node_counts)});
  page.summary.push_back({"weights", bytes_text(report.weight_bytes)});
  page.summary.push_back({"work", cost_text(report.cost)});
  add_ends(page, graph);
  page.verdict = nodes_verdict(report.nodes, report.is_judged_by_rules());
  if (!report.fusions.empty()) page.summary.push_back({"graft convert fuses", fusions_text(report.fusions)});
  Verdicts verdicts = add_verdicts(page, graph, report.nodes, report.is_judged_by_rules(), release, "main graph");
  add_warnings(page, report.warnings);
  page.next = next_commands(report);
  html::Table fusions = add_fusions(page, verdicts.drawn, report.fusions);
  if (!fusions.rows.empty()) page.sections.emplace_back(std::move(fusions));
  page.sections.emplace_back(std::move(verdicts.table));
  return page;
}

}  // namespace graft::present
