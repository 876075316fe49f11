// Similar rewrites share a line, because networks repeat the same layers.
#include "present/text/convert_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "present/text/inspect_text.hpp"
#include "present/text/model_text.hpp"
#include "present/text/value_check_text.hpp"
#include "present/text/verdict_text.hpp"
#include "present/text/verify_text.hpp"

namespace graft::present {
namespace {

std::string nodes_text(const report::Rewrite& rewrite, bool all) {
  return all ? fmt::format("{}", fmt::join(rewrite.replaced(), ", ")) : rewrite.replaced_text();
}

/// A line for one rewrite, or for several rewrites with the same replacement and the same number of replaced nodes.
struct Line {
  std::string text;
  std::string replacement;
  std::string proof;
  std::size_t nodes = 0;
  std::size_t count = 0;
};

/// Returns how rewrites were proven: "each proven", or "3 proven, 2 spot-checked, 15 alike to those ...".
std::string proofs_text(const std::vector<const report::Rewrite*>& rewrites) {
  std::size_t own = 0;
  std::size_t checked = 0;
  std::size_t alike = 0;
  for (const report::Rewrite* rewrite : rewrites) {
    own += rewrite->proof_kind == report::ProofKind::own ? 1U : 0U;
    checked += rewrite->proof_kind == report::ProofKind::spot_check ? 1U : 0U;
    alike += rewrite->proof_kind == report::ProofKind::one_of_a_kind ? 1U : 0U;
  }
  if (own == rewrites.size()) return "each proven";
  return fmt::format("{} proven, {} spot-checked, {} that differ from these only in the values of weights and in sizes",
                     own, checked, alike);
}

std::vector<Line> lines_of(const report::RewriteReport& report, const report::PassSummary& pass, bool all) {
  std::vector<Line> lines;
  std::vector<std::vector<const report::Rewrite*>> of_lines;
  std::vector<const report::Rewrite*> proven;
  for (const report::Rewrite& rewrite : report.rewrites) {
    if (rewrite.pass != pass.pass) continue;
    const std::size_t nodes = rewrite.replaced().size();
    if (!rewrite.proof.empty()) proven.push_back(&rewrite);
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
      return !all && line.replacement == rewrite.replacement && line.nodes == nodes;
    });
    if (same == lines.end()) {
      lines.push_back({.text = fmt::format("{} -> {}", nodes_text(rewrite, all), rewrite.replacement),
                       .replacement = rewrite.replacement,
                       .proof = rewrite.proof,
                       .nodes = nodes,
                       .count = 1});
      of_lines.push_back({&rewrite});
    } else {
      ++same->count;
      of_lines[static_cast<std::size_t>(same - lines.begin())].push_back(&rewrite);
    }
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].count < 2 || lines[i].proof.empty()) continue;
    lines[i].proof = fmt::format("{}; the first: {}", proofs_text(of_lines[i]), lines[i].proof);
  }
  if (all || lines.size() <= 1) return lines;
  constexpr std::size_t few = 6;
  const std::string whole =
      count_text(pass.rewrites, "change") + (proven.size() == pass.rewrites ? ", " + proofs_text(proven) : "");
  if (pass.is_cleanup) return {{.text = whole, .replacement = "", .proof = "", .nodes = 0, .count = 1}};
  if (lines.size() > few) {
    lines.resize(few);
    lines.push_back({.text = fmt::format("and more, {} in total; -v shows each", whole),
                     .replacement = "",
                     .proof = "",
                     .nodes = 0,
                     .count = 1});
  }
  return lines;
}

std::string outcome_text(const report::RuleOutcome& rule) {
  if (rule.matched == 0) return "matched nothing";
  if (rule.applied == rule.matched) return fmt::format("done, {}", count_text(rule.applied, "place"));
  return fmt::format("done in {} of {}", rule.applied, count_text(rule.matched, "place"));
}

std::string count_of_proofs(const report::RewriteReport& report) {
  if (report.rewrites.empty() && report.proofs_run == 0) return "nothing was rewritten";
  const std::size_t proofs = report.proofs_run - report.spot_checks;
  std::string text = proofs != 0 ? count_text(proofs, "proof") : "no rewrite needed a separate proof";
  if (report.spot_checks + report.proofs_alike == 0) return text;
  return fmt::format("{}, {} and {} from proven rewrites only in weights", text,
                     count_text(report.spot_checks, "spot check"),
                     count_text(report.proofs_alike, "rewrite that differs", "rewrites that differ"));
}

/// Returns the operators of all nodes in the function that a node calls, and in the functions that this function calls;
/// empty for a node that calls no function.
std::set<std::string> operators_in_body(const std::vector<report::ModelFunction>& functions, const NodeRef& call) {
  std::set<std::string> operators;
  std::vector<std::pair<std::string, std::string>> waiting = {{call.domain, call.op}};
  while (!waiting.empty()) {
    const auto [domain, name] = std::move(waiting.back());
    waiting.pop_back();
    for (const report::ModelFunction& function : functions) {
      if (function.domain != domain || function.name != name) continue;
      function.body.for_each_node([&](const report::ModelNode& node) {
        if (operators.insert(node.op).second) waiting.emplace_back(node.ref.domain, node.ref.op);
      });
    }
  }
  return operators;
}

}  // namespace

std::string summary_text(const report::ConvertReport& report) {
  const std::string origin = origin_text(report.origin);
  return fmt::format("{}{} before, {} after, {}, {} of weights", origin.empty() ? "" : origin + ", as ONNX ",
                     nodes_text(report.nodes_before), nodes_text(report.nodes_after),
                     report.options.prove ? count_of_proofs(report) : "nothing was proven",
                     bytes_text(report.weight_bytes));
}

std::string timings_text(const report::ConvertReport& report) {
  const report::ConvertSeconds& seconds = report.seconds;
  return fmt::format(
      "read in {:.2f} s, rewritten in {:.2f} s, proven in {:.2f} s, values compared in {:.2f} s, written in {:.2f} s",
      seconds.read, seconds.rewrite, seconds.prove, seconds.compare, seconds.write);
}

Table rewrites_table(const report::RewriteReport& report, bool verbose) {
  Table table;
  for (const report::PassSummary& pass : report.passes) {
    if (pass.rewrites == 0) continue;
    bool first = true;
    for (const Line& line : lines_of(report, pass, verbose)) {
      table.add({{first ? pass.pass : "", Color::strong},
                 line.count == 1 ? line.text : fmt::format("{}, {} times", line.text, line.count)});
      if (!line.proof.empty()) table.add({"", {"proof: " + line.proof, Color::faint}});
      first = false;
    }
  }
  return table;
}

Table choices_table(const report::RewriteReport& report, bool verbose) {
  std::vector<std::pair<const report::OperatorChoice*, std::size_t>> groups;
  for (const report::OperatorChoice& choice : report.choices) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.first->kind == choice.kind && group.first->op == choice.op && group.first->reason == choice.reason;
    });
    if (same != groups.end() && !verbose) {
      ++same->second;
    } else {
      groups.emplace_back(&choice, 1);
    }
  }
  constexpr std::size_t widest = 60;
  Table table;
  for (const auto& [choice, count] : groups) {
    const bool plugin = choice->kind == report::OperatorChoice::Kind::plugin;
    table.add({{std::string(to_string(choice->kind)), plugin ? Color::good : Color::none},
               count == 1 ? (verbose ? describe(choice->node) : shortened(describe(choice->node), widest))
                          : fmt::format("{} nodes ({})", count, choice->op),
               choice->reason});
  }
  return table;
}

Table explanation_table(const report::RewriteReport& report, const report::PassSummary& pass) {
  Table table;
  for (const report::Rewrite& rewrite : report.rewrites) {
    if (rewrite.pass != pass.pass) continue;
    table.add({{"done", Color::good}, fmt::format("{} -> {}", nodes_text(rewrite, true), rewrite.replacement)});
    table.add({"", {rewrite.reason, Color::faint}});
    if (!rewrite.proof.empty()) table.add({"", {"proof: " + rewrite.proof, Color::faint}});
  }
  for (const report::Rewrite& rewrite : report.rejected) {
    if (rewrite.pass != pass.pass) continue;
    table.add({{"not done", Color::caution}, fmt::format("{} -> {}", nodes_text(rewrite, true), rewrite.replacement)});
    table.add({"", {rewrite.proof, Color::faint}});
  }
  return table;
}

Table near_misses_table(const report::RewriteReport& report, bool verbose) {
  constexpr std::size_t most = 8;
  constexpr double near_enough = 0.5;
  Table table;
  std::set<std::string> patterns;  // patterns that have a place in the table; layers of a network repeat
  std::size_t left_out = 0;
  for (const report::NearMiss& near : report.near_misses) {
    const bool is_near = near.is_of_library || near.share() >= near_enough;
    if (!verbose && (!is_near || patterns.size() == most || !patterns.insert(near.pattern).second)) {
      ++left_out;
      continue;
    }
    table.add({{near.pass, Color::strong},
               fmt::format("{} at {}, {} of {} matched", near.pattern, describe(near.node), near.matched_nodes,
                           count_text(near.pattern_nodes, "node"))});
    table.add({"", {near.reason, Color::faint}});
  }
  if (left_out != 0) {
    table.add(
        {{left_out == 1 ? "and 1 more place; -v lists it" : fmt::format("and {} more places; -v lists them", left_out),
          Color::faint}});
  }
  return table;
}

Table rules_table(const report::RewriteReport& report, bool explained) {
  Table table;
  for (const report::RuleOutcome& rule : report.rules) {
    const Color color = rule.failed() ? Color::bad : rule.applied == 0 ? Color::caution : Color::good;
    table.add({rule.place, {outcome_text(rule), color}, rule.rule});
    if (!explained) continue;
    if (!rule.reason.empty()) table.add({"", "", {rule.reason, Color::faint}});
    for (const std::string& note : rule.notes) table.add({"", "", {note, Color::faint}});
  }
  return table;
}

std::vector<std::string> rule_errors(const report::RewriteReport& report) {
  std::vector<std::string> errors;
  for (const report::RuleOutcome& rule : report.rules) {
    if (!rule.failed()) continue;
    std::string text = fmt::format("{}: {}: {}", rule.place, rule.rule, outcome_text(rule));
    for (const std::string& note : rule.notes) text += "\n" + note;
    errors.push_back(std::move(text));
  }
  return errors;
}

Table problems_table(const std::vector<report::NodeSupport>& nodes, report::Support verdict, bool are_on_host) {
  // Groups of nodes with the same operator and the same reason, in the order of their first nodes.
  std::vector<std::vector<const report::NodeSupport*>> groups;
  for (const report::NodeSupport& node : nodes) {
    if (node.support != verdict) continue;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.front()->op == node.op && group.front()->reason == node.reason;
    });
    if (same != groups.end()) {
      same->push_back(&node);
    } else {
      groups.push_back({&node});
    }
  }
  Table table;
  for (const auto& group : groups) {
    constexpr std::size_t few = 4;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(few, group.size()); ++i) names.push_back(group[i]->node.name);
    const std::size_t more = group.size() - names.size();
    table.add({{group.front()->op, color_of(verdict)},
               fmt::format("{}{}", fmt::join(names, ", "), more == 0 ? "" : fmt::format(" and {} more", more))});
    table.add({"", group.front()->reason});
    if (!are_on_host) table.add({"", {"what to do: " + group.front()->advice, Color::faint}});
  }
  return table;
}

std::string problems_title(const std::vector<report::NodeSupport>& nodes, report::Support verdict, bool are_on_host) {
  const auto count = std::count_if(nodes.begin(), nodes.end(),
                                   [&](const report::NodeSupport& node) { return node.support == verdict; });
  if (count == 0) return {};
  const std::string nodes_text = count_text(static_cast<std::size_t>(count), "node");
  if (are_on_host) {
    return fmt::format("{} {} in the half for the host now, as requested", nodes_text, count == 1 ? "is" : "are");
  }
  switch (verdict) {
    case report::Support::unknown: return nodes_text + " for which no rule determines whether TensorRT runs them";
    case report::Support::unsupported: {
      const bool is_any_wrong = std::any_of(nodes.begin(), nodes.end(), [&](const report::NodeSupport& node) {
        return node.support == verdict && report::is_computed_wrongly(node);
      });
      return fmt::format("{} that neither TensorRT nor Graft {}", nodes_text,
                         is_any_wrong ? "computes correctly" : "runs");
    }
    default: return fmt::format("{}: {}", nodes_text, meaning_of(verdict));
  }
}

namespace {

/// Returns how the built engine runs Graft's operators and those of libraries: "; Snake runs as a plugin, LRN as its
/// function". Returns an empty string if the network has none.
std::string operators_in_engine(const std::vector<report::NodeSupport>& nodes) {
  std::set<std::string> plugins;
  std::set<std::string> functions;
  for (const report::NodeSupport& node : nodes) {
    if (node.support == report::Support::plugin) plugins.insert(node.node.op);
    if (node.support == report::Support::native && node.node.domain == "graft") functions.insert(node.node.op);
  }
  std::vector<std::string> clauses;
  if (!plugins.empty()) {
    clauses.push_back(fmt::format("{} {} plugin{}", fmt::join(plugins, ", "),
                                  plugins.size() == 1 ? "runs as a" : "run as", plugins.size() == 1 ? "" : "s"));
  }
  if (!functions.empty()) {
    clauses.push_back(fmt::format("{} {} function{}", fmt::join(functions, ", "),
                                  functions.size() == 1 ? "runs as its" : "run as their",
                                  functions.size() == 1 ? "" : "s"));
  }
  return clauses.empty() ? "" : fmt::format("; {}", fmt::join(clauses, ", "));
}

}  // namespace

std::string check_text(const report::ConvertReport& report) {
  if (!report.check) {
    return fmt::format("not checked with TensorRT but judged by Graft's rules: {}", report.not_checked);
  }
  const report::ProbeSummary& check = *report.check;
  const std::string who = check.tensorrt.title();
  if (check.built) {
    return fmt::format("{} builds the result{}{}", who, built_shapes_text(check), operators_in_engine(report.nodes));
  }
  if (!check.not_built.empty()) {
    return fmt::format("{} parses the result, and did not build it: {}", who, check.not_built);
  }
  if (check.judge == report::Judge::parser) return fmt::format("{} parsed the result; it was not built", who);
  return fmt::format("{} does not build the result", who);
}

std::string values_text(const report::ConvertReport& report) {
  const report::ValueCheck& values = report.values;
  const std::string given = report.file.string();
  if (!report.values_not_compared.empty()) {
    return fmt::format("the values were not compared with those of {}: {}", given, report.values_not_compared);
  }
  if (!values.report || values.report->dispute) return missed_check_text(values, given);
  std::string text = fmt::format("the result and {} are {}: {}, computed by {}", given,
                                 verdict_text(*values.report, values.report->verdict()),
                                 count_text(values.report->runs, "run"), values.report->ran_in);
  for (const std::string& line : values.report->left_out) text += "\n" + line;
  for (const std::string& problem : values.report->problems) text += "\n" + problem;
  for (const std::string& line : definition_lines(*values.report)) text += "\n" + line;
  return text;
}

std::string newly_running_text(const report::ConvertReport& report) {
  if (report.failed_before.empty() || (report.check && !report.check->built)) return {};
  // If the result does not run, an unchanged node may be the cause, even if the rules accept the node.
  const bool runs = report.runs().value_or(false);
  const auto is_left = [&](const report::NodeSupport& before) {
    return std::any_of(report.nodes.begin(), report.nodes.end(), [&](const report::NodeSupport& after) {
      const bool is_same = after.node.name == before.node.name &&
                           (after.op == before.op || !before.node.name.empty());  // or op has a new domain
      return is_same && (report::is_bad(after.support) || (!runs && after.op == before.op));
    });
  };
  // The conversion may have replaced the call of a function by its body.
  const std::vector<report::ModelFunction> functions = report.original.functions();
  const auto is_left_in_body = [&](const report::NodeSupport& before) {
    const std::set<std::string> body = operators_in_body(functions, before.node);
    return std::any_of(report.nodes.begin(), report.nodes.end(), [&](const report::NodeSupport& after) {
      return (report::is_bad(after.support) || report::is_open(after.support)) && body.contains(after.op);
    });
  };
  std::map<std::string, std::size_t> counts;
  // A node that was removed, or merged with an equal node, does not run in another form.
  const auto is_removed = [&](const report::NodeSupport& before) {
    return std::any_of(report.rewrites.begin(), report.rewrites.end(), [&](const report::Rewrite& rewrite) {
      return (rewrite.pass == "merge_equal_nodes" || rewrite.pass == "remove_dead") &&
             std::any_of(rewrite.nodes.begin(), rewrite.nodes.end(),
                         [&](const NodeRef& node) { return node.id == before.node.id; });
    });
  };
  for (const report::NodeSupport& before : report.failed_before) {
    const bool ran_before = report::is_computed_wrongly(before);
    counts[before.op] += ran_before || is_left(before) || is_left_in_body(before) || is_removed(before) ? 0 : 1;
  }
  std::vector<std::string> operators;
  for (const auto& [op, count] : counts) {
    if (count != 0) operators.push_back(count == 1 ? op : fmt::format("{} {}", count, op));
  }
  if (operators.empty()) return {};
  return fmt::format("{}TensorRT now runs nodes that it did not run before: {}",
                     report.check ? "" : "by Graft's rules, ", fmt::join(operators, ", "));
}

std::string without_functions_text(std::size_t nodes) {
  if (nodes == 0) return "--no-functions: the model has no node of Graft's operators, so no function was omitted";
  return fmt::format(
      "{} without {} ONNX function{}: TensorRT's own parser creates plugins for {} if the plugin library is loaded, "
      "and otherwise refuses the model. ONNX Runtime cannot run the file; graft can.",
      count_text(nodes, "node"), nodes == 1 ? "its" : "their", nodes == 1 ? "" : "s", nodes == 1 ? "it" : "them");
}

}  // namespace graft::present
