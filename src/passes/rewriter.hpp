// Rewriter applies the changes of passes to a model after proving them on the CPU, and records them.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graft/operator/operator.hpp"
#include "onnx/matcher.hpp"
#include "onnx/model.hpp"
#include "onnx/node_ref.hpp"
#include "passes/layout/axis_maps.hpp"
#include "passes/report.hpp"
#include "runtime/engine.hpp"
#include "verify/prove/prove.hpp"

namespace graft::passes {

struct ConvertOptions;

/// A proposed change: the nodes between `inputs` and `outputs` are replaced by nodes that compute the same.
struct Proposal {
  std::vector<onnx::Node*> nodes;  ///< The nodes that are replaced.
  /// The values from which the replaced nodes compute `outputs`, other than constants. Values that are computed from
  /// shapes need not be listed.
  std::vector<onnx::Value*> inputs = {};
  std::vector<onnx::Value*> outputs = {};  ///< The values where the region ends, in the graph that is edited.
  std::string replacement;
  std::string reason;
  /// The text of the proof if the ONNX specification defines that old and new nodes are equal, so that nothing is run;
  /// otherwise empty.
  std::string by_definition = {};
  /// Applies the change to a graph: the graph of the model, or the copy of the replaced nodes that is run as the proof.
  /// Must therefore look up values by name, not by pointer. Nodes that become unused are removed later.
  std::function<void(onnx::Graph&)> edit = {};
  /// Whether the result changes on purpose. Old and new nodes are then run, and the report shows the difference.
  bool changes_result = false;
  /// The shapes that `inputs` have in the proof, by name, if old and new nodes are equal at these shapes only; `reason`
  /// should state this.
  std::map<std::string, Shape, std::less<>> proof_shapes = {};
  /// The text of the proof if the engine lacks an operator of the original nodes, so that nothing can be run; otherwise
  /// empty.
  std::string where_engine_lacks_it = {};
  /// Whether only ONNX Runtime can prove the change, because it defines an operator of the original nodes that other
  /// engines compute differently. If ONNX Runtime is missing or cannot run the nodes, `where_engine_lacks_it` is the
  /// proof.
  bool is_proven_by_onnxruntime = false;
  /// Whether other than small values make the results overflow, see ProofOptions::small_values.
  bool needs_small_values = false;
  std::string place = {};  ///< The position of the rule in its file, see Rewrite::place.
  /// The values in `inputs` with which the proof also makes runs on tensors without elements, see
  /// ProofOptions::emptied. Such a proposal is never proven by running the whole model, which may have no inputs for
  /// which these tensors are empty.
  std::vector<onnx::Value*> emptied = {};
};

/// Returns a proposal that replaces one node, with its used outputs as outputs. The caller must set `edit`.
[[nodiscard]] Proposal propose_for(onnx::Node& node, std::string replacement, std::string reason);

/// Thrown if a rewrite fails a spot check after similar rewrites were accepted because of one proof. convert() catches
/// it, starts again from the original model and proves each rewrite.
class NotAlike : public std::exception {
 public:
  explicit NotAlike(std::string text) : text_(std::move(text)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// Returns the main graph and all sub-graphs, outer ones first. Bodies of functions are not included.
[[nodiscard]] std::vector<onnx::Graph*> graphs_of(onnx::Model& model);

/// Proves, applies and records the rewrites of passes. Similar rewrites are proven once: those with the same nodes,
/// types, small constants and replacement, with weights of the same sizes and signs, and with the same shapes except
/// for sizes that do not occur as integers in the region. The second, fourth, eighth ... of them are spot-checked by a
/// few runs. If a spot check fails, the rewrites of the kind are proven one by one; if some were accepted already,
/// NotAlike is thrown.
class Rewriter {
 public:
  /// All arguments must outlive the Rewriter.
  Rewriter(const runtime::Engine& engine, onnx::Model& model, const ConvertOptions& options, RewriteReport& report);
  Rewriter(const runtime::Engine&, onnx::Model&, ConvertOptions&&, RewriteReport&) = delete;

  struct Verdict {
    bool proven = false;
    std::string text;
    ProofKind kind = ProofKind::own;
    bool could_not_run = false;  ///< Whether no trial could be run.
  };

  [[nodiscard]] const runtime::Engine& engine() const { return engine_; }
  [[nodiscard]] onnx::Model& model() { return model_; }
  [[nodiscard]] const ConvertOptions& options() const { return options_; }
  /// Returns the graphs of the model in the order of graphs_of().
  [[nodiscard]] std::vector<onnx::Graph*> graphs() { return graphs_of(model_); }

  /// Starts a round of all passes, and resets the count of whole-model proofs.
  void begin_round() { whole_model_proofs_ = 0; }

  /// Starts a pass: the rewrites that follow are recorded under the name `pass`.
  void begin(std::string pass);

  /// Proves the change by running a copy of the replaced nodes with and without it, and then applies it to the model.
  /// If the change is disproved or cannot be proven, returns false, leaves the model unchanged and lists the change as
  /// rejected in the report.
  bool apply(const Proposal& proposal);

  /// The things that a rewrite replaces, for its entry in the report: nodes, and in `others` a description of things
  /// that `nodes` does not list, such as "3 calls of functions"; empty if there are none.
  struct Subject {
    std::vector<NodeRef> nodes = {};
    std::string others = {};
  };

  /// Records a rewrite that has been applied already and is correct by definition. `proof` is the text for the report.
  void record(Subject subject, std::string replacement, std::string reason, std::string proof);

  void record_rejected(Subject subject, std::string replacement, std::string reason, std::string why);

  /// Compares two models between the values named `inputs` and `outputs`, which may be in a sub-graph. If this region
  /// cannot be run by itself, compares the whole models, which may take long.
  [[nodiscard]] Verdict prove_values(const onnx::Model& before, const onnx::Model& after,
                                     const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

  /// Adds a warning to the report, for an assumption of a rewrite that the user has to check.
  void warn(std::string text);

  void record_rule(RuleOutcome outcome);
  /// Returns the rewrite that was rejected last. There must have been one.
  [[nodiscard]] const Rewrite& last_rejected() const;

  /// Returns whether the current pass has proposed this replacement for these nodes before and it was disproved, so
  /// that it need not be tried again. A rewrite that could not be run does not count, because more shapes may be known
  /// now.
  [[nodiscard]] bool was_rejected(const std::vector<NodeRef>& nodes, const std::string& replacement) const;

  /// Records a near miss: a node (the anchor) at which only a part of the pattern named `pattern` matched. For each
  /// anchor, the report keeps two near misses, unless the node is rewritten later: the one with the largest matched
  /// fraction of its pattern among patterns of loaded libraries, and the same among Graft's own patterns.
  void near_miss(const std::string& pattern, const onnx::NearMiss& near);
  /// Removes the near misses of a node, which record() has reported as rewritten, from the report.
  void forget_near_misses(const onnx::Node& node);
  /// Records a near miss at which all nodes of a pattern matched, but another condition, described by `reason`, does
  /// not hold.
  void near_miss(const std::string& pattern, const onnx::Match& match, const std::string& reason) {
    const std::size_t nodes = match.nodes.size();
    near_miss(pattern, {.node = match.root, .matched_nodes = nodes, .pattern_nodes = nodes, .reason = reason});
  }

  /// Returns why a plugin cannot run in this graph (it is the body of a node in which TensorRT builds no plugins), or
  /// an empty string if it can.
  [[nodiscard]] std::string refusal_of_plugin_in(const onnx::Graph& graph) const;

  /// Returns whether replacing the nodes that compute y from x by `op` is useful. It is if TensorRT has a native layer
  /// for the operator, or if plugins are allowed and TensorRT builds them where y is. In a body in which TensorRT
  /// builds none, records that the network's own layers stay. Returns false if the opset of the graph does not support
  /// functions.
  [[nodiscard]] bool is_wanted(const Operator& op, const FunctionInputs& inputs, const onnx::Value& x,
                               const onnx::Value& y);
  void choose(const NodeRef& node, std::string_view op, OperatorChoice::Kind kind, std::string reason);

  /// Returns the maximum total size, in bytes, of all constants of the model after folding. The first call sets it to
  /// `if_first`, and later calls return the same number; a limit computed anew by each pass would grow with each round.
  [[nodiscard]] std::int64_t most_constant_bytes(std::int64_t if_first);

  /// Returns a counter of the elements of constants that lowerings added, in all rounds. Callers increase it.
  [[nodiscard]] std::int64_t& lowered_numbers() { return lowered_numbers_; }
  /// Returns a counter of the nodes that lowerings added by copying bodies of Loops and Scans, in all rounds. Callers
  /// increase it.
  [[nodiscard]] std::int64_t& copied_nodes() { return copied_nodes_; }

  /// Returns the cache of learned movements, keyed by region_text() of the region.
  [[nodiscard]] std::unordered_map<std::string, LearnedMovement>& learned_movements() { return learned_movements_; }

  void end();     ///< Ends a pass that changed something: removes nodes that became unused.
  void finish();  ///< Completes the report after all passes.

 private:
  /// Returns the key in `rejections_` of a rewrite that the current pass proposes.
  [[nodiscard]] std::string key_of(const std::vector<NodeRef>& nodes, const std::string& replacement) const;
  void reject(Rewrite rewrite, bool is_final);
  [[nodiscard]] Verdict prove(const Proposal& proposal);
  [[nodiscard]] Verdict prove_by_onnxruntime(const Proposal& proposal);
  [[nodiscard]] Verdict prove_region_of(const Proposal& proposal, const std::vector<const onnx::Value*>& inputs);
  /// The replaced nodes of a proposal as a separate model, and the model of the nodes that replace them.
  struct Region {
    onnx::Model before;
    onnx::Model after;
  };
  [[nodiscard]] Region region_of(const Proposal& proposal, const std::vector<const onnx::Value*>& inputs) const;
  [[nodiscard]] Verdict prove_models(const onnx::Model& before, const onnx::Model& after);
  [[nodiscard]] Verdict prove_whole_model(const Proposal& proposal, const std::string& why);
  [[nodiscard]] Verdict compare_models(const onnx::Model& before, const onnx::Model& after, bool changes_result);

  /// A group of similar rewrites, of which the first was proven (see Rewriter).
  struct ProvenKind {
    std::string first;  ///< A description of the nodes of the rewrite that was proven.
    std::string text;
    std::size_t members = 1;
    bool holds = true;  ///< Whether every spot check has held.
  };
  /// Returns ConvertOptions::proof with the additions that a proposal requests.
  [[nodiscard]] verify::ProofOptions options_for(const Proposal& proposal) const;
  [[nodiscard]] Verdict prove_regions(const runtime::Engine& engine, const Region& region, bool changes_result,
                                      const std::string& nodes, const verify::ProofOptions& options);
  [[nodiscard]] std::optional<Verdict> prove_alike(const runtime::Engine& engine, ProvenKind& kind,
                                                   const Region& region, verify::ProofOptions options);

  const runtime::Engine& engine_;
  onnx::Model& model_;
  const ConvertOptions& options_;
  RewriteReport& report_;
  std::unordered_map<std::string, LearnedMovement> learned_movements_;
  std::string pass_;
  std::vector<std::string> anchors_;  // the keys of notes_, in the order of their first note
  // Maps an anchor to the nearest near miss of a library and the nearest near miss of Graft.
  std::unordered_map<std::string, std::array<std::optional<NearMiss>, 2>> notes_;
  std::unordered_set<std::string> rewritten_;  // anchors of rewritten nodes
  // A rejected rewrite: its index in the report, and whether it was disproved or only could not be run. The keys of
  // rejections_ are those of key_of.
  struct Rejection {
    std::size_t index = 0;
    bool is_final = true;
  };
  std::unordered_map<std::string, Rejection> rejections_;
  std::size_t last_rejected_ = 0;
  std::unordered_set<std::string> kept_native_;        // operators and inputs of fusions that were left out in bodies
  std::unordered_map<std::string, Verdict> verdicts_;  // keyed by the text of both regions
  std::unordered_map<std::string, ProvenKind> kinds_;  // keyed by the text of both regions without weight values
  std::size_t whole_model_proofs_ = 0;
  std::optional<std::int64_t> most_constant_bytes_;
  std::int64_t lowered_numbers_ = 0;
  std::int64_t copied_nodes_ = 0;
};

/// Returns a function for Proposal::edit that replaces the node which computes the value `output` by a node of `op`
/// that reads the values `inputs`.
[[nodiscard]] std::function<void(onnx::Graph&)> operator_edit(std::shared_ptr<const Operator> op,
                                                              std::vector<std::string> inputs, std::string output);

/// Returns an operator with its attributes as a string: `L2Normalize<axes=[1], epsilon=1e-12, epsilon_mode="max">`.
[[nodiscard]] std::string to_text(const Operator& op);

/// Returns whether the shapes of both values are known and equal in every dimension. Two dynamic dimensions are equal
/// only if they have the same symbolic size.
[[nodiscard]] bool same_shape(const onnx::Value& a, const onnx::Value& b);

}  // namespace graft::passes
