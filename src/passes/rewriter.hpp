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

/// A change to a region of a graph: the nodes between `inputs` and `outputs` are computed in another way.
struct Proposal {
  std::vector<onnx::Node*> nodes;  ///< The nodes that are replaced.
  /// The values where the region begins. Constants, and tensors of shapes, need not be listed.
  std::vector<onnx::Value*> inputs = {};
  std::vector<onnx::Value*> outputs = {};  ///< The values where the region ends, in the graph that is edited.
  std::string replacement;
  std::string reason;
  /// The proof, if ONNX itself defines that both are the same and a run would prove nothing; otherwise empty.
  std::string by_definition = {};
  /// Applies the change to a graph: the real one, or a copy of the region for the proof. It therefore finds its values
  /// by name. Nodes that become unused are removed later.
  std::function<void(onnx::Graph&)> edit = {};
  /// Whether the result changes on purpose. Both are then run, and the report shows how far they are apart.
  bool changes_result = false;
  /// The shapes of inputs, if both are the same at these sizes only. The reason then states this.
  std::map<std::string, Shape, std::less<>> proof_shapes = {};
  /// The proof, if the engine does not have an operator of the original, so that there is nothing to run; otherwise
  /// empty.
  std::string where_engine_lacks_it = {};
  /// Whether only ONNX Runtime proves the change, because it defines an operator of the original and other engines
  /// compute it differently. Where it runs nothing of the original, `where_engine_lacks_it` is the proof.
  bool is_proven_by_onnxruntime = false;
  std::string place = {};  ///< The place of the rule, see Rewrite::place.
  /// Tensors that the proof also runs without elements, see ProofOptions::emptied. Such a proposal is proven by its
  /// region only, because the whole model may have no inputs for which these tensors are empty.
  std::vector<onnx::Value*> emptied = {};
};

/// Returns the proposal to replace one node, without an edit. The region ends at the outputs that are used.
[[nodiscard]] Proposal propose_for(onnx::Node& node, std::string replacement, std::string reason);

/// Thrown if a rewrite that looked like a proven one does not hold, after others were accepted without a proof of their
/// own.
class NotAlike : public std::exception {
 public:
  explicit NotAlike(std::string text) : text_(std::move(text)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// Returns the main graph and all sub-graphs, outer ones first. Bodies of functions are not included.
[[nodiscard]] std::vector<onnx::Graph*> graphs_of(onnx::Model& model);

/// Proves, applies and records the changes of passes. Rewrites that are alike (the same nodes, types, small constants
/// and replacement, weights of the same sizes and signs, and the same shapes except for sizes that no integer of the
/// region names) are proven once; the second, fourth, eighth of a kind and so on also by a few runs. If such a spot
/// check fails, each rewrite of the kind is proven; if some have been accepted by then, NotAlike is thrown.
class Rewriter {
 public:
  /// All arguments must outlive the Rewriter.
  Rewriter(const runtime::Engine& engine, onnx::Model& model, const ConvertOptions& options, RewriteReport& report);
  Rewriter(const runtime::Engine&, onnx::Model&, ConvertOptions&&, RewriteReport&) = delete;

  struct Verdict {
    bool proven = false;
    std::string text;
    ProofKind kind = ProofKind::own;
    bool could_not_run = false;  ///< Whether there was not a single trial.
  };

  [[nodiscard]] const runtime::Engine& engine() const { return engine_; }
  [[nodiscard]] onnx::Model& model() { return model_; }
  [[nodiscard]] const ConvertOptions& options() const { return options_; }
  /// Returns all graphs of the model, see graphs_of.
  [[nodiscard]] std::vector<onnx::Graph*> graphs() { return graphs_of(model_); }

  /// Starts a round, in which all passes run.
  void begin_round() { whole_model_proofs_ = 0; }

  /// Starts a pass: the changes that follow are recorded under its name.
  void begin(std::string pass);

  /// Proves the change on a copy of its region, then applies it. If the change is disproved or cannot be proven, the
  /// model stays as it is, the report lists the change as rejected, and the result is false.
  bool apply(const Proposal& proposal);

  /// The things that a change replaces, as in Rewrite.
  struct Subject {
    std::vector<NodeRef> nodes = {};
    std::string others = {};
  };

  /// Records a change that needs no run to prove it, and has been made already.
  void record(Subject subject, std::string replacement, std::string reason, std::string proof);

  void record_rejected(Subject subject, std::string replacement, std::string reason, std::string why);

  /// Compares the region between values of these names in a model and in a changed copy of the model, in a sub-graph
  /// too. If the region cannot be run on its own, compares the whole models, which may take long.
  [[nodiscard]] Verdict prove_values(const onnx::Model& before, const onnx::Model& after,
                                     const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

  /// Records an assumption of a rewrite that the user has to know.
  void warn(std::string text);

  void record_rule(RuleOutcome outcome);
  /// Returns the rewrite that was rejected last.
  [[nodiscard]] const Rewrite& last_rejected() const;

  /// Returns whether this pass has proposed the replacement for these nodes before and it was disproved. Passes run
  /// several times, and a disproved rewrite is not tried again. A rewrite that could not be run is tried again, because
  /// more shapes may be known by then.
  [[nodiscard]] bool was_rejected(const std::vector<NodeRef>& nodes, const std::string& replacement) const;

  /// Records a near miss. For each anchor node, the nearest of a library and the nearest of Graft's own are kept. Near
  /// misses of nodes that are rewritten after all are dropped.
  void near_miss(const std::string& pattern, const onnx::NearMiss& near);
  /// Drops the near misses of a node that is rewritten by record().
  void forget_near_misses(const onnx::Node& node);
  /// Records that the whole pattern matches, but another condition does not hold.
  void near_miss(const std::string& pattern, const onnx::Match& match, const std::string& reason) {
    const std::size_t nodes = match.nodes.size();
    near_miss(pattern, {.node = match.root, .matched_nodes = nodes, .pattern_nodes = nodes, .reason = reason});
  }

  /// Returns why a plugin may not replace a node of this graph: the graph is the body of a node in which TensorRT
  /// builds none. Returns an empty string if a plugin may.
  [[nodiscard]] std::string refusal_of_plugin_in(const onnx::Graph& graph) const;

  /// Returns whether fusing the nodes that compute y from x into `op` is useful. Without plugins, or where TensorRT
  /// builds none, it is useful only if TensorRT has the operator itself. It never is in an operator set in which
  /// functions cannot be written. If y lies where TensorRT builds no plugin, records that the network's own layers
  /// stay.
  [[nodiscard]] bool is_wanted(const Operator& op, const FunctionInputs& inputs, const onnx::Value& x,
                               const onnx::Value& y);
  void choose(const NodeRef& node, std::string_view op, OperatorChoice::Kind kind, std::string reason);

  /// Returns the number of bytes that all constants of the model may take when they are folded. The first call sets it
  /// to `if_first`: if each pass set a limit of its own, each could double the constants of the one before.
  [[nodiscard]] std::int64_t most_constant_bytes(std::int64_t if_first);

  /// The number of elements in the constants of all lowered nodes, in all rounds.
  [[nodiscard]] std::int64_t& lowered_numbers() { return lowered_numbers_; }
  /// The number of nodes in the copies of bodies that replace Loops and Scans, in all rounds.
  [[nodiscard]] std::int64_t& copied_nodes() { return copied_nodes_; }

  /// The learned movements of regions, by region_text.
  [[nodiscard]] std::unordered_map<std::string, LearnedMovement>& learned_movements() { return learned_movements_; }

  void end();     ///< Ends a pass that changed something: removes nodes that became unused.
  void finish();  ///< Completes the report after all passes.

 private:
  /// Returns the key of a rewrite by the pass that runs.
  [[nodiscard]] std::string key_of(const std::vector<NodeRef>& nodes, const std::string& replacement) const;
  void reject(Rewrite rewrite, bool is_final);
  [[nodiscard]] Verdict prove(const Proposal& proposal);
  [[nodiscard]] Verdict prove_by_onnxruntime(const Proposal& proposal);
  [[nodiscard]] Verdict prove_region_of(const Proposal& proposal, const std::vector<const onnx::Value*>& inputs);
  /// The region that a proposal changes, as models of their own before and after the change.
  struct Region {
    onnx::Model before;
    onnx::Model after;
  };
  [[nodiscard]] Region region_of(const Proposal& proposal, const std::vector<const onnx::Value*>& inputs) const;
  [[nodiscard]] Verdict prove_models(const onnx::Model& before, const onnx::Model& after);
  [[nodiscard]] Verdict prove_whole_model(const Proposal& proposal, const std::string& why);
  [[nodiscard]] Verdict compare_models(const onnx::Model& before, const onnx::Model& after, bool changes_result);

  /// A kind of rewrites that are alike.
  struct ProvenKind {
    std::string first;  ///< The nodes of the rewrite that was proven.
    std::string text;
    std::size_t members = 1;
    bool holds = true;  ///< Whether every spot check has held.
  };
  [[nodiscard]] Verdict prove_regions(const runtime::Engine& engine, const Region& region, bool changes_result,
                                      const std::string& nodes, const std::vector<onnx::Value*>& emptied = {});
  [[nodiscard]] std::optional<Verdict> prove_alike(const runtime::Engine& engine, ProvenKind& kind,
                                                   const Region& region);

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

/// Returns an edit for Proposal that replaces the node which computes `output` by a node of `op` that reads `inputs`.
[[nodiscard]] std::function<void(onnx::Graph&)> operator_edit(std::shared_ptr<const Operator> op,
                                                              std::vector<std::string> inputs, std::string output);

/// Returns an operator as a string: `L2Normalize<axes=[1], epsilon=1e-12, epsilon_mode="max">`.
[[nodiscard]] std::string to_text(const Operator& op);

/// Returns whether both shapes are known and the same, dimension by dimension. Two unknown dimensions are not the same.
[[nodiscard]] bool same_shape(const onnx::Value& a, const onnx::Value& b);

}  // namespace graft::passes
