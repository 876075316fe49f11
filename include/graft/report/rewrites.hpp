// The report of the rewrites of a model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/field.hpp"

namespace graft::report {

/// The policy that decides which nodes run as plugins.
enum class Plugins : std::uint8_t {
  automatic,  ///< A plugin runs where no native layer is both exact and as fast.
  always,     ///< A plugin runs wherever one of Graft's operators can compute the node.
  /// Standard operators run wherever they can express the node. Other Graft operators remain plugins, and an ONNX
  /// operator that only a plugin runs counts as unsupported.
  never,
};

/// The rounding of values that a model rounds to u8 or with a zero point, where TensorRT has only i8 without one.
enum class Quantized : std::uint8_t {
  exact,  ///< The values are rounded in f32, as ONNX defines it. The layers that read them compute in f32.
  /// The values are rounded to i8 with the zero point 0 and a scale that covers the same range, so that layers that
  /// read them compute in i8. The steps become up to twice as large, which changes the results.
  symmetric,
};

/// Returns "exact" or "symmetric".
[[nodiscard]] inline std::string to_string(Quantized quantized) {
  return quantized == Quantized::exact ? "exact" : "symmetric";
}

/// The default limit on the number of nodes that replace one Loop or Scan. See ConvertOptions::unroll.
inline constexpr std::int64_t default_unroll = 1000;

/// How a rewrite was proven.
enum class ProofKind : std::uint8_t {
  own,  ///< The rewrite was proven by its own runs, or holds by definition.
  /// The rewrite was proven by a few runs of its own. It differs only in the values of weights from another rewrite,
  /// which had all runs of a proof.
  spot_check,
  /// The rewrite was not run. It differs only in the values of weights from another rewrite, which was proven.
  one_of_a_kind
};

/// Returns "own", "spot check" or "one of a kind".
[[nodiscard]] inline std::string to_string(ProofKind kind) {
  switch (kind) {
    case ProofKind::own: return "own";
    case ProofKind::spot_check: return "spot check";
    case ProofKind::one_of_a_kind: return "one of a kind";
  }
  return "";
}

/// A rewrite that was applied, or that was rejected because its proof failed or proved nothing.
struct Rewrite {
  std::string pass;
  std::vector<NodeRef> nodes;
  std::string others;
  std::string replacement;
  std::string reason;
  std::string proof;
  ProofKind proof_kind = ProofKind::own;
  std::string place = {};

  /// Returns a description of each node, group of nodes or tensor that the rewrite removes: "3 Constant nodes", "node
  /// 'conv1' (Conv)".
  [[nodiscard]] std::vector<std::string> replaced() const {
    std::vector<std::string> texts;
    if (!others.empty()) texts.push_back(others);
    for (const NodeRef& node : nodes) texts.push_back(describe(node));
    return texts;
  }
  /// Returns the strings of replaced(), joined by commas, if there are at most two; otherwise their number, such as "5
  /// nodes".
  [[nodiscard]] std::string replaced_text() const {
    const std::vector<std::string> texts = replaced();
    if (texts.size() > 2) return std::to_string(texts.size()) + " nodes";
    std::string text;
    for (const std::string& each : texts) text += (text.empty() ? "" : ", ") + each;
    return text;
  }

  static constexpr auto fields() {
    return std::tuple{
        field("rewrite_pass", "pass", &Rewrite::pass, "The name of the pass."),
        field("nodes", nullptr, &Rewrite::nodes, "The nodes that are removed."),
        field("others", nullptr, &Rewrite::others,
              "Things other than nodes that are removed: '3 Constant nodes', \"tensor 'x'\"; mostly empty."),
        field(nullptr, "nodes", &Rewrite::replaced, "The nodes and other things that are removed."),
        field("replacement", &Rewrite::replacement, "The nodes that replace them, for example 'LeakyReLU<alpha=0.1>'."),
        field("reason", &Rewrite::reason, "Why the rewrite is valid."),
        field("proof", &Rewrite::proof,
              "The runs that proved the rewrite; for a rejected rewrite, the runs that disagreed or the reason."),
        field("proof_kind", &Rewrite::proof_kind,
              "How the rewrite was proven: 'own' (all runs of a proof), 'spot check' (a few runs, because it differs "
              "only in the values of weights from a proven rewrite) or 'one of a kind' (no runs, because it differs "
              "only in the values of weights from a proven rewrite)."),
        field("place", nullptr, &Rewrite::place,
              "The place of a library's fusion, 'my_ops/swish_fusion.yaml:2:3'; empty otherwise."),
    };
  }
};

/// A node of the model at which a pattern of a pass matched only in part.
struct NearMiss {
  std::string pass;
  std::string pattern;
  NodeRef node;
  std::size_t matched_nodes = 0;
  std::size_t pattern_nodes = 0;
  std::string reason;
  bool is_of_library = false;

  /// Returns the share of the pattern that matched, from 0 to 1.
  [[nodiscard]] double share() const {
    return pattern_nodes == 0 ? 0.0 : static_cast<double>(matched_nodes) / static_cast<double>(pattern_nodes);
  }
  [[nodiscard]] std::string node_text() const { return describe(node); }

  static constexpr auto fields() {
    return std::tuple{
        field("pass", &NearMiss::pass, "The name of the pass."),
        field("pattern", &NearMiss::pattern, "The name of the pattern, for example 'L2Normalize, epsilon_mode max'."),
        field(nullptr, "node", &NearMiss::node_text, "The node that was compared with the pattern's last node."),
        field("matched_nodes", &NearMiss::matched_nodes, "The number of nodes that match."),
        field("pattern_nodes", &NearMiss::pattern_nodes, "The number of nodes in the whole pattern."),
        field("reason", &NearMiss::reason, "The first condition that does not hold."),
    };
  }
};

/// How TensorRT runs a node that one of Graft's operators can compute.
struct OperatorChoice {
  enum class Kind : std::uint8_t { native, plugin, function };
  NodeRef node;
  std::string op;
  Kind kind = Kind::plugin;
  std::string reason;

  [[nodiscard]] std::string node_text() const { return describe(node); }

  static constexpr auto fields() {
    return std::tuple{
        field("node", nullptr, &OperatorChoice::node, "The node of the model."),
        field(nullptr, "node", &OperatorChoice::node_text, "The node of the model."),
        field("op", "operator", &OperatorChoice::op, "The name of Graft's operator."),
        field("kind", &OperatorChoice::kind, "'native', 'plugin' or 'function'."),
        field("reason", &OperatorChoice::reason, "Why TensorRT runs the node in this way."),
    };
  }
};

/// Returns "native", "plugin" or "function".
[[nodiscard]] inline std::string to_string(OperatorChoice::Kind kind) {
  switch (kind) {
    case OperatorChoice::Kind::native: return "native";
    case OperatorChoice::Kind::plugin: return "plugin";
    case OperatorChoice::Kind::function: return "function";
  }
  return "";
}

/// The result of applying one of the user's rules.
struct RuleOutcome {
  std::string place;
  std::string rule;
  std::string reason;
  bool optional = false;
  std::size_t matched = 0;
  std::size_t applied = 0;
  std::vector<std::string> notes;

  /// Returns whether the rule failed: it is not optional, and it matched nothing or was not applied at every match.
  [[nodiscard]] bool failed() const { return !optional && (matched == 0 || applied < matched); }

  static constexpr auto fields() {
    return std::tuple{
        field("place", &RuleOutcome::place, "The place of the rule in its file: 'rules.yaml:3:5'."),
        field("rule", &RuleOutcome::rule, "The rule: 'replace operator `Conv` with graft::Convolution'."),
        field("reason", &RuleOutcome::reason, "The reason that the file states for the rule."),
        field("matched", &RuleOutcome::matched, "The number of places in the model that the rule matches."),
        field("applied", &RuleOutcome::applied, "The number of these places where the rule was applied."),
        field("failed", &RuleOutcome::failed,
              "Whether a rule that is not optional matched nothing, or was not applied at every place."),
        field("notes", &RuleOutcome::notes,
              "Why the rule was not applied at a place, or, if nothing matched, the places that came nearest."),
    };
  }
};

/// A pass of the pipeline, with the totals of all its runs.
struct PassSummary {
  std::string pass;
  std::string why;
  bool is_cleanup = false;  ///< Whether the pass only removes and simplifies nodes.
  std::size_t rewrites = 0;
  double seconds = 0;

  static constexpr auto fields() {
    return std::tuple{
        field("pass", &PassSummary::pass, "The name of the pass."),
        field("why", &PassSummary::why, "The purpose of the pass."),
        field("rewrites", &PassSummary::rewrites, "The number of rewrites that the pass made."),
        field("seconds", &PassSummary::seconds, "The time of all runs of the pass."),
    };
  }
};

/// The rewrites of a conversion: applied, rejected and near misses, with the reasons.
struct RewriteReport {
  std::vector<PassSummary> passes;
  std::vector<Rewrite> rewrites;
  std::vector<Rewrite> rejected;
  std::vector<std::string> rejections;  ///< A line for each kind of rejected rewrite, except the rewrites of rules.
  std::vector<NearMiss> near_misses;
  std::vector<OperatorChoice> choices;
  std::vector<std::string> warnings;  ///< The assumptions that applied rewrites make.
  std::vector<RuleOutcome> rules;
  std::size_t proofs_run = 0;
  double proof_seconds = 0;
  std::size_t proofs_reused = 0;
  std::size_t spot_checks = 0;
  std::size_t proofs_alike = 0;

  /// Returns the number of rewrites that `pass` applied.
  [[nodiscard]] std::size_t count(std::string_view pass) const {
    return static_cast<std::size_t>(
        std::count_if(rewrites.begin(), rewrites.end(), [&](const Rewrite& rewrite) { return rewrite.pass == pass; }));
  }
  /// Returns whether the pass of the rewrite only removes and simplifies nodes.
  [[nodiscard]] bool is_cleanup(const Rewrite& rewrite) const {
    const auto found = std::ranges::find(passes, rewrite.pass, &PassSummary::pass);
    return found != passes.end() && found->is_cleanup;
  }
  /// Returns whether no rule failed: every rule that is not optional matched, and was applied at every match.
  [[nodiscard]] bool are_rules_done() const { return std::ranges::none_of(rules, &RuleOutcome::failed); }
  /// Returns a message for each rule that failed.
  [[nodiscard]] std::vector<std::string> failed_rules() const {
    std::vector<std::string> failures;
    for (const RuleOutcome& rule : rules) {
      if (!rule.failed()) continue;
      std::string text = rule.place + ": " + rule.rule + ": the rule was applied in " + std::to_string(rule.applied) +
                         " of " + std::to_string(rule.matched) + " places";
      for (const std::string& note : rule.notes) text += "\n" + note;
      failures.push_back(std::move(text));
    }
    return failures;
  }

  static constexpr auto fields() {
    return std::tuple{
        field(nullptr, "passes", &RewriteReport::passes, "The passes of the pipeline, in the order in which they ran."),
        field(nullptr, "rules", &RewriteReport::rules, "The user's rules, in the order in which they ran."),
        field("failed_rules", nullptr, &RewriteReport::failed_rules,
              "Rules that are not optional and were not applied everywhere, with reasons."),
        field("rewrites", &RewriteReport::rewrites, "The rewrites that were applied."),
        field("rejected", "undone", &RewriteReport::rejected,
              "Rewrites that were not applied because their proof failed, or because nothing could be proven."),
        field(nullptr, "near_misses", &RewriteReport::near_misses,
              "Places where a pattern nearly matched, the nearest first."),
        field("choices", &RewriteReport::choices, "How TensorRT runs the nodes that Graft's operators can compute."),
        field("proofs_run", &RewriteReport::proofs_run, "The number of proofs that were run."),
        field(nullptr, "spot_checks", &RewriteReport::spot_checks, "The number of these that were spot checks."),
        field(nullptr, "proofs_alike", &RewriteReport::proofs_alike,
              "The number of rewrites that were not run, because they differ only in the values of weights from proven "
              "rewrites."),
        field(nullptr, "proofs_reused", &RewriteReport::proofs_reused,
              "The number of proofs that were reused for the same region with the same shapes."),
    };
  }
};

}  // namespace graft::report
