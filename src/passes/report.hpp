// The report of a conversion: rewrites that were made, rewrites that were nearly made, and the reasons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graft/node_ref.hpp"

namespace graft::passes {

/// How a rewrite was proven.
enum class ProofKind : std::uint8_t {
  own,           ///< The rewrite was run itself, or holds by definition.
  spot_check,    ///< The rewrite had a few runs of its own; another of its kind had all of them.
  one_of_a_kind  ///< Only another rewrite was run, which differs in the values of weights alone.
};
/// Returns "own", "spot check" or "one of a kind".
[[nodiscard]] std::string_view to_string(ProofKind kind);

/// A change that a pass made or proposed.
struct Rewrite {
  std::string pass;
  std::vector<NodeRef> nodes;  ///< The nodes that are removed.
  std::string others;  ///< Things other than nodes that are removed: "3 Constant nodes", "tensor 'x'"; mostly empty.
  std::string replacement;  ///< The new nodes: "L2Normalize<axes=[1], epsilon=1e-12, epsilon_mode=\"norm\">".
  std::string reason;       ///< Why the change is right.
  std::string proof;        ///< The runs that proved the rewrite, or the reason why it was rejected.
  ProofKind proof_kind = ProofKind::own;
  std::string place = {};  ///< The place of a library's fusion, "my_ops/swish_fusion.yaml:2:3". Otherwise empty.
};

/// Returns a string for each thing that a rewrite replaces: "3 Constant nodes", "node 'conv1' (Conv)".
[[nodiscard]] std::vector<std::string> replaced_texts(const Rewrite& rewrite);
/// Returns one line about what a rewrite replaces: the strings of replaced_texts if there are at most two, otherwise a
/// count.
[[nodiscard]] std::string replaced_text(const Rewrite& rewrite);

/// A place where a pattern began to match and failed.
struct NearMissNote {
  std::string pass;
  std::string pattern;  ///< The name of the pattern: "L2Normalize, epsilon_mode max".
  NodeRef node;         ///< The node that was compared with the pattern's last node.
  std::size_t matched_nodes = 0;
  std::size_t pattern_nodes = 0;  ///< The number of nodes in the whole pattern.
  std::string reason;             ///< The first condition that does not hold.
  bool is_of_library = false;     ///< Whether the pattern is from a library that the user loaded.

  /// Returns the part of the pattern that matched, from 0 to 1.
  [[nodiscard]] double share() const;
};
/// Returns whether `a` is more useful than `b` to a user who wants to know why nothing was rewritten: patterns of the
/// user's own libraries come first, then those of which a larger share matched.
[[nodiscard]] bool is_nearer(const NearMissNote& a, const NearMissNote& b);

/// How TensorRT will run a node that a Graft operator can compute.
struct OperatorChoice {
  enum class Kind { native, plugin, function };
  NodeRef node;
  std::string op;  ///< The operator's name.
  Kind kind = Kind::plugin;
  std::string reason;
};
/// Returns "native", "plugin" or "function".
[[nodiscard]] std::string_view to_string(OperatorChoice::Kind kind);

/// The result of applying one of the user's rules.
struct RuleOutcome {
  std::string place;  ///< "rules.yaml:3:5"
  std::string rule;   ///< "replace operator `Conv` by graft::Convolution"
  std::string reason;
  bool optional = false;
  std::size_t matched = 0;  ///< Places in the model that the rule matches.
  std::size_t applied = 0;  ///< The matched places where the rule was applied.
  /// Why the rule was not applied at a place, or, if nothing matched, the places that came nearest.
  std::vector<std::string> notes;

  /// Returns whether a rule that is not optional matched nothing, or was not applied at every place.
  [[nodiscard]] bool failed() const { return !optional && (matched == 0 || applied < matched); }
};

/// A pass of the pipeline, with the sums of all its runs.
struct PassSummary {
  std::string pass;
  std::string why;
  bool is_cleanup = false;  ///< See PassKind::cleanup.
  std::size_t rewrites = 0;
  double seconds = 0;
};

struct ConvertReport {
  std::vector<PassSummary> passes;
  std::vector<Rewrite> rewrites;
  std::vector<Rewrite> rejected;  ///< Rejected because the proof failed, or left out because nothing could be proven.
  std::vector<NearMissNote> near_misses;  ///< The nearest first, see is_nearer.
  std::vector<OperatorChoice> choices;
  std::vector<std::string> warnings;  ///< Assumptions of rewrites, each with its node.
  std::vector<RuleOutcome> rules;     ///< The rules in the order in which they ran.
  std::size_t proofs_run = 0;
  double proof_seconds = 0;
  std::size_t proofs_reused = 0;  ///< Proofs that were reused: the same region with the same shapes.
  std::size_t spot_checks = 0;    ///< The number of proofs_run that were spot checks.
  /// Rewrites that were not run, because all but the values of their weights had been proven.
  std::size_t proofs_alike = 0;

  /// Returns the number of rewrites that `pass` made.
  [[nodiscard]] std::size_t count(std::string_view pass) const;
};

/// Returns whether a rewrite was made by a cleanup pass.
[[nodiscard]] bool is_cleanup(const ConvertReport& report, const Rewrite& rewrite);

/// Returns a line for each kind of rejected rewrite, with the first place and its cause. Rewrites that the user's rules
/// request are left out, because RuleOutcome reports them.
[[nodiscard]] std::vector<std::string> rejection_warnings(const ConvertReport& report);
/// Returns the assumptions of rewrites, followed by rejection_warnings.
[[nodiscard]] std::vector<std::string> all_warnings(const ConvertReport& report);

}  // namespace graft::passes
