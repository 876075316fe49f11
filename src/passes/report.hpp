// What a conversion did, what it nearly did, and why.
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
  own,           ///< By runs of its own, or by definition.
  spot_check,    ///< By a few runs of its own; one of its kind by all of them.
  one_of_a_kind  ///< By the runs of another, from which it differs in the values of weights alone.
};
/// "own", "spot check", "one of a kind".
[[nodiscard]] std::string_view to_string(ProofKind kind);

/// One change that a pass made or wanted to make.
struct Rewrite {
  std::string pass;
  std::vector<NodeRef> nodes;  ///< The nodes that go.
  std::string others;          ///< What goes besides, and is no node: "3 Constant nodes", "tensor 'x'"; mostly empty.
  std::string replacement;     ///< What comes: "L2Normalize<axes=[1], epsilon=1e-12, epsilon_mode=\"norm\">".
  std::string reason;          ///< Why it may be done.
  std::string proof;           ///< What was run to prove it; of a rejected one, what disagreed.
  ProofKind proof_kind = ProofKind::own;
  std::string place = {};  ///< Of a library's fusion: "my_ops/swish_fusion.yaml:2:3". Otherwise empty.
};

/// What a rewrite is about, a text for each: "3 Constant nodes", "node 'conv1' (Conv)".
[[nodiscard]] std::vector<std::string> replaced_texts(const Rewrite& rewrite);
/// The same in a line: a number where there are many.
[[nodiscard]] std::string replaced_text(const Rewrite& rewrite);

/// A place where a pattern began to match and failed.
struct NearMissNote {
  std::string pass;
  std::string pattern;  ///< "L2Normalize, epsilon_mode max".
  NodeRef node;         ///< Where the pattern's last node was tried.
  std::size_t matched_nodes = 0;
  std::size_t pattern_nodes = 0;  ///< That it has in all.
  std::string reason;             ///< The first condition that failed.
  bool is_of_library = false;     ///< The pattern is that of a library which the user loaded.

  /// Of the pattern, from 0 to 1.
  [[nodiscard]] double share() const;
};
/// Whether the first says more to who asks why nothing was rewritten: the user's own patterns do, then what comes
/// nearer.
[[nodiscard]] bool is_nearer(const NearMissNote& a, const NearMissNote& b);

/// How a node that an operator of Graft stands for will run in TensorRT.
struct OperatorChoice {
  enum class Kind { native, plugin, function };
  NodeRef node;
  std::string op;  ///< The operator's name.
  Kind kind = Kind::plugin;
  std::string reason;
};
/// "native", "plugin", "function".
[[nodiscard]] std::string_view to_string(OperatorChoice::Kind kind);

/// What became of one rule of the user.
struct RuleOutcome {
  std::string place;  ///< "rules.yaml:3:5"
  std::string rule;   ///< "replace operator `Conv` by graft::Convolution"
  std::string reason;
  bool optional = false;
  std::size_t matched = 0;         ///< Places in the model that the rule is about.
  std::size_t applied = 0;         ///< Of those, where it was done.
  std::vector<std::string> notes;  ///< Where it was not: why. Where nothing matched: what came nearest.

  /// Nothing matched, or something was not done, and the rule is not optional.
  [[nodiscard]] bool failed() const { return !optional && (matched == 0 || applied < matched); }
};

/// One entry of the pipeline as it was run.
struct PassSummary {
  std::string pass;
  std::string why;
  std::size_t rewrites = 0;
  double seconds = 0;
};

struct ConvertReport {
  std::vector<PassSummary> passes;
  std::vector<Rewrite> rewrites;
  std::vector<Rewrite> rejected;  ///< Rejected because the proof failed, or left out because nothing could be proven.
  std::vector<NearMissNote> near_misses;  ///< In the order of is_nearer.
  std::vector<OperatorChoice> choices;
  std::vector<std::string> warnings;  ///< What rewrites assume, with the node.
  std::vector<RuleOutcome> rules;     ///< In the order in which they ran.
  std::size_t proofs_run = 0;
  double proof_seconds = 0;
  std::size_t proofs_reused = 0;  ///< The same region with the same shapes had been proven before.
  std::size_t spot_checks = 0;    ///< Of proofs_run: those of rewrites alike to a proven one.
  std::size_t proofs_alike = 0;   ///< Not run: all but the values of weights was proven before.

  /// Those of `pass`.
  [[nodiscard]] std::size_t count(std::string_view pass) const;
};

/// A line for each kind of rewrite that was rejected, with the first place and cause; those that rules asked for aside,
/// whose outcomes say it.
[[nodiscard]] std::vector<std::string> rejection_warnings(const ConvertReport& report);
/// What rewrites assume, and these.
[[nodiscard]] std::vector<std::string> all_warnings(const ConvertReport& report);

}  // namespace graft::passes
