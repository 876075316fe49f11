// Nodes are found in the original model by the ids in the report of the conversion.
#include "present/html/convert_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "present/html/inspect_page.hpp"
#include "present/html/model_graph.hpp"
#include "present/html/page.hpp"
#include "present/text/convert_text.hpp"
#include "present/text/next_steps_text.hpp"

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
  /// Links each node of the original graph to the nodes of the converted graph that compute the same values, in both
  /// directions.
  void link_counterparts(const html::ModelPlaces& after);
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
  page_.compared = html::Comparison{.before = 0, .after = 0};
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

void ConvertPage::link_counterparts(const html::ModelPlaces& after) {
  // A rewrite joins its nodes. The node that computes the last of their outputs afterwards has one of their ids, also
  // where a later rewrite continues this one.
  std::map<std::string, std::string> parents;
  const auto root_of = [&](const std::string& id) {
    std::string root = id;
    for (auto parent = parents.find(root); parent != parents.end(); parent = parents.find(root)) root = parent->second;
    if (root != id) parents[id] = root;  // the next search is short
    return root;
  };
  for (const report::Rewrite& rewrite : report_.rewrites) {
    if (rewrite.nodes.empty()) continue;
    const std::string root = root_of(rewrite.nodes.front().id);
    for (const NodeRef& node : rewrite.nodes) {
      const std::string other = root_of(node.id);
      if (other != root) parents.emplace(other, root);
    }
  }
  std::vector<html::Node>& originals = page_.graphs[page_.compared->before].nodes;
  std::vector<html::Node>& results = page_.graphs[page_.compared->after].nodes;
  const auto link = [&](std::size_t original, std::size_t result) {
    // A rewrite may move hundreds of nodes at once; a list of all of them helps nobody.
    constexpr std::size_t most = 16;
    if (originals[original].counterparts.size() == most || results[result].counterparts.size() == most) return;
    originals[original].counterparts.push_back(result);
    results[result].counterparts.push_back(original);
  };
  std::map<std::string, std::size_t> same_id;
  std::multimap<std::string, std::size_t> same_root;
  for (const auto& [id, place] : after.by_id) {
    if (place.graph != page_.compared->after) continue;
    same_id.emplace(id, place.node);
    same_root.emplace(root_of(id), place.node);
  }
  std::vector<std::pair<std::string, std::size_t>> rewritten_nodes;
  for (const auto& [id, place] : before_.by_id) {
    if (place.graph != page_.compared->before) continue;
    const auto same = same_id.find(id);
    if (same != same_id.end() && results[same->second].op == originals[place.node].op) {
      link(place.node, same->second);
    } else {
      rewritten_nodes.emplace_back(id, place.node);
    }
  }
  for (const auto& [id, node] : rewritten_nodes) {
    const auto [first, last] = same_root.equal_range(root_of(id));
    for (auto each = first; each != last; ++each) link(node, each->second);
  }
  // The inputs and outputs of the network.
  std::map<std::pair<std::string, std::string>, std::size_t> ends;
  const auto key_of = [](const html::Node& node) { return std::pair(node.op, node.name); };
  for (std::size_t i = 0; i < originals.size(); ++i) {
    if (originals[i].is_end) ends.emplace(key_of(originals[i]), i);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto original = results[i].is_end ? ends.find(key_of(results[i])) : ends.end();
    if (original == ends.end()) continue;
    link(original->second, i);
  }
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
  page_.summary.push_back({"work before", cost_text(done.cost_before)});
  page_.summary.push_back({"work after", cost_text(done.cost_after)});
  page_.verdict = nodes_verdict(done.nodes, done.is_judged_by_rules());
  add_ends(page_, graph);
  for (const report::Rewrite& rewrite : done.rewrites) mark(rewrite);
  page_.compared->after = page_.graphs.size();
  Verdicts verdicts = add_verdicts(page_, graph, done.nodes, done.is_judged_by_rules(), done.release_title(), "after");
  verdicts.table.title = "Nodes after the conversion";
  link_counterparts(verdicts.drawn);
  if (done.verified() == report::Verdict::different) {
    page_.problems.push_back({.title = "Different values", .kind = {}, .reason = values_text(done), .advice = {}});
  }
  add_warnings(page_, done.failed_rules());
  add_warnings(page_, done.all_warnings());
  page_.next = next_commands(done);

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
  add(std::move(verdicts.table));
  return std::move(page_);
}

}  // namespace

html::Report convert_page(const report::ConvertReport& report) { return ConvertPage(report).finish(); }

}  // namespace graft::present
