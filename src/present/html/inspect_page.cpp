// Verdicts are in the order in which Graph::for_each_node visits the nodes.
#include "present/html/inspect_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "present/html/model_graph.hpp"
#include "present/html/page.hpp"
#include "present/text/inspect_text.hpp"
#include "present/text/model_text.hpp"

namespace graft::present {
namespace {

report::Kind kind_of(inspect::Verdict verdict, bool by_rules) {
  report::Kind kind{.key = std::string(inspect::name_of(verdict)),
                    .mark = {},
                    .title = std::string(inspect::name_of(verdict)),
                    .meaning = inspect::meaning_of(verdict, by_rules),
                    .tone = report::Tone::plain,
                    .is_problem = inspect::is_bad(verdict)};
  switch (verdict) {
    case inspect::Verdict::native: kind.mark = "✓"; break;
    case inspect::Verdict::lowered:
      kind.mark = "↧";
      kind.tone = report::Tone::violet;
      break;
    case inspect::Verdict::plugin:
      kind.mark = "◆";
      kind.tone = report::Tone::green;
      break;
    case inspect::Verdict::unknown:
    case inspect::Verdict::not_asked:
      kind.mark = "?";
      kind.tone = report::Tone::amber;
      break;
    default:
      kind.mark = "✕";
      kind.tone = report::Tone::red;
      break;
  }
  return kind;
}

report::Table table_of(const std::vector<inspect::NodeVerdict>& nodes,
                       const std::vector<std::optional<report::Place>>& places) {
  using Type = report::Column::Type;
  report::Table table{.title = "Nodes",
                      .columns = {{"node", Type::node},
                                  {"operator", Type::code},
                                  {"verdict", Type::kind, "how TensorRT will run it"},
                                  {"why", Type::text},
                                  {"what to do", Type::text}}};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const inspect::NodeVerdict& node = nodes[i];
    // A constant is drawn as part of the nodes that read it.
    if (!places[i] && node.op == "Constant" && node.verdict == inspect::Verdict::native) continue;
    table.rows.push_back({node_cell(places[i], node.node.name), node.op, std::string(inspect::name_of(node.verdict)),
                          node.reason, node.advice});
  }
  return table;
}

}  // namespace

report::Table add_verdicts(report::Report& report, const onnx::Model& model,
                           const std::vector<inspect::NodeVerdict>& nodes, const std::string& title) {
  const bool by_rules = inspect::are_by_rules(nodes);
  for (const inspect::Verdict verdict : inspect::all_verdicts) {
    const bool is_there =
        std::any_of(nodes.begin(), nodes.end(), [&](const inspect::NodeVerdict& n) { return n.verdict == verdict; });
    if (is_there || (!inspect::is_by_tensorrt(verdict) && !inspect::is_open(verdict)))
      report.kinds.push_back(kind_of(verdict, by_rules));
  }
  const report::ModelPlaces drawn = report::add_graphs(report, model, title);
  std::vector<std::optional<report::Place>> places;
  model.graph().for_each_node([&](const onnx::Node& node) {
    const auto found = drawn.nodes.find(&node);
    places.push_back(found == drawn.nodes.end() ? std::nullopt : std::optional(found->second));
  });
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!places[i]) continue;
    report::Node& node = report.graphs[places[i]->graph].nodes[places[i]->node];
    node.kind = inspect::name_of(nodes[i].verdict);
    node.reason = nodes[i].reason;
    node.advice = nodes[i].advice;
  }
  return table_of(nodes, places);
}

report::Report inspect_page(const toolkit::Inspection& inspection) {
  report::Report page = new_model_report("inspect", inspection.file.string());
  if (const std::string origin = origin_text(inspection.origin); !origin.empty()) {
    page.summary.push_back({"read", origin});
  }
  if (inspection.release) page.summary.push_back({"release", inspect::title_of(*inspection.release)});
  page.summary.push_back({"answered by", answered_by(inspection)});
  page.summary.push_back({"opset", fmt::format("{}", inspection.model.graph().opset())});
  add_ends(page, inspection.model);
  page.sections.emplace_back(add_verdicts(page, inspection.model, inspection.nodes, "main graph"));
  return page;
}

}  // namespace graft::present
