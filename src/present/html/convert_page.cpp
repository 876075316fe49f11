// Nodes are found in the original model by the ids in the report of the conversion.
#include "present/html/convert_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "present/html/inspect_page.hpp"
#include "present/html/model_graph.hpp"
#include "present/html/page.hpp"
#include "present/text/convert_text.hpp"

namespace graft::present {
namespace {

using Type = html::Column::Type;

constexpr const char* rewritten = "rewritten";
constexpr const char* tidied = "tidied";

html::Table choices_of(const report::RewriteReport& done) {
  html::Table table{.title = "Graft's operators in TensorRT",
                    .columns = {{"node", Type::text}, {"runs as", Type::text}, {"why", Type::text}}};
  for (const report::OperatorChoice& choice : done.choices) {
    table.rows.push_back({describe(choice.node), std::string(to_string(choice.kind)), choice.reason});
  }
  return table;
}

html::Table rules_of(const report::RewriteReport& done) {
  html::Table table{.title = "Rules",
                    .columns = {{"place", Type::code},
                                {"rule", Type::text},
                                {"matched", Type::number},
                                {"done", Type::number},
                                {"why", Type::text},
                                {"notes", Type::text}}};
  for (const report::RuleOutcome& rule : done.rules) {
    table.rows.push_back({rule.place, rule.rule, static_cast<double>(rule.matched), static_cast<double>(rule.applied),
                          rule.reason, fmt::format("{}", fmt::join(rule.notes, "; "))});
  }
  return table;
}

/// Marks the rewritten nodes in the graph of the original model, and lists the rewrites.
class ConvertPage {
 public:
  explicit ConvertPage(const report::ConvertReport& report);
  [[nodiscard]] html::Report finish();

 private:
  void mark(const report::Rewrite& rewrite);
  /// Returns a cell with the first node that is drawn, and a cell with `text`, which names all nodes.
  [[nodiscard]] std::vector<html::Cell> cells_of(const std::vector<NodeRef>& nodes, const std::string& text) const;
  /// Returns a table of rewrites: of cleanup passes if `tidying` is true, of other passes if it is false, of all passes
  /// if it is not set.
  [[nodiscard]] html::Table rewrites(std::string title, const std::vector<report::Rewrite>& rewrites,
                                     std::optional<bool> tidying) const;

  const report::ConvertReport& report_;
  html::Report page_;
  html::ModelPlaces before_;
};

ConvertPage::ConvertPage(const report::ConvertReport& report)
    : report_(report), page_(new_model_report("convert", report.file.string())) {
  before_ = html::add_graphs(page_, report.original.with_inferred_shapes().graph(), "before");
  page_.kinds = {{.key = rewritten,
                  .mark = "➜",
                  .title = rewritten,
                  .meaning = "replaced by other nodes",
                  .tone = html::Tone::amber},
                 {.key = tidied,
                  .mark = "~",
                  .title = "cleaned up",
                  .meaning = "folded, moved or removed",
                  .tone = html::Tone::blue}};
}

void ConvertPage::mark(const report::Rewrite& rewrite) {
  for (const NodeRef& replaced : rewrite.nodes) {
    const auto [first, last] = before_.by_id.equal_range(replaced.id);
    for (auto each = first; each != last; ++each) {
      html::Node& node = page_.graphs[each->second.graph].nodes[each->second.node];
      if (node.kind == rewritten) continue;
      node.kind = report_.is_cleanup(rewrite) ? tidied : rewritten;
      node.reason = rewrite.reason;
      node.facts = {{"pass", rewrite.pass}, {"becomes", rewrite.replacement}};
      if (!rewrite.proof.empty()) node.facts.push_back({"proof", rewrite.proof});
    }
  }
}

std::vector<html::Cell> ConvertPage::cells_of(const std::vector<NodeRef>& nodes, const std::string& text) const {
  html::Cell drawn;
  for (const NodeRef& node : nodes) {
    const auto found = before_.by_id.find(node.id);
    if (found == before_.by_id.end()) continue;
    drawn = found->second;
    break;
  }
  return {drawn, text};
}

html::Table ConvertPage::rewrites(std::string title, const std::vector<report::Rewrite>& rewrites,
                                  std::optional<bool> tidying) const {
  html::Table table{.title = std::move(title),
                    .columns = {{"at", Type::node},
                                {"nodes", Type::text},
                                {"become", Type::code},
                                {"pass", Type::code},
                                {"why it is correct", Type::text},
                                {"proof", Type::text}},
                    .is_folded = tidying.value_or(false)};
  for (const report::Rewrite& rewrite : rewrites) {
    if (tidying && report_.is_cleanup(rewrite) != *tidying) continue;
    std::vector<html::Cell> row = cells_of(rewrite.nodes, fmt::format("{}", fmt::join(rewrite.replaced(), ", ")));
    for (const std::string& text : {rewrite.replacement, rewrite.pass, rewrite.reason, rewrite.proof}) {
      row.emplace_back(text);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

html::Report ConvertPage::finish() {
  const report::ConvertReport& done = report_;
  const report::ModelGraph graph = done.model.graph();
  page_.summary.push_back({"result", summary_text(done)});
  page_.summary.push_back({"values", values_text(done)});
  page_.summary.push_back({"check", check_text(done)});
  add_ends(page_, graph);
  for (const report::Rewrite& rewrite : done.rewrites) mark(rewrite);
  html::Table verdicts =
      add_verdicts(page_, graph, done.nodes, done.is_judged_by_rules(), done.release_title(), "after");
  verdicts.title = "Nodes after the conversion";

  const auto add = [&](html::Table table) {
    if (!table.rows.empty()) page_.sections.emplace_back(std::move(table));
  };
  add(rules_of(done));
  add(choices_of(done));
  add(rewrites("Rewrites", done.rewrites, false));
  html::Table undone = rewrites("Rejected rewrites, whose proof failed", done.rejected, {});
  undone.columns.back().title = "failed proof";
  add(std::move(undone));
  add(rewrites("Cleanup", done.rewrites, true));
  html::Table nearly{.title = "Near misses",
                     .columns = {{"at", Type::node},
                                 {"node", Type::text},
                                 {"pattern", Type::text},
                                 {"nodes matched", Type::number},
                                 {"the condition that failed", Type::text}},
                     .is_folded = true};
  for (const report::NearMiss& near : done.near_misses) {
    std::vector<html::Cell> row = cells_of({near.node}, describe(near.node));
    row.emplace_back(near.pattern);
    row.emplace_back(static_cast<double>(near.matched_nodes));
    row.emplace_back(near.reason);
    nearly.rows.push_back(std::move(row));
  }
  add(std::move(nearly));
  add(std::move(verdicts));
  return std::move(page_);
}

}  // namespace

html::Report convert_page(const report::ConvertReport& report) { return ConvertPage(report).finish(); }

}  // namespace graft::present
