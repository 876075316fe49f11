// The workbench of the passes: every change goes through it, is proven on the CPU first, and is written down.
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

#include "graft/operator.hpp"
#include "onnx/matcher.hpp"
#include "onnx/model.hpp"
#include "onnx/node_ref.hpp"
#include "passes/axis_maps.hpp"
#include "passes/report.hpp"
#include "runtime/engine.hpp"
#include "verify/prove.hpp"

namespace graft::passes {

struct ConvertOptions;

/// A change to a region of a graph: the nodes between `inputs` and `outputs` are computed in another way.
struct Proposal {
  std::vector<onnx::Node*> nodes;    ///< What goes.
  std::vector<onnx::Value*> inputs;  ///< Where the region begins; constants, and tensors of shapes, need not be listed.
  std::vector<onnx::Value*> outputs;  ///< Where it ends. All in the graph that is edited.
  std::string replacement;
  std::string reason;
  std::string by_definition;  ///< Not empty where ONNX itself says so and a run would prove nothing; then the proof.
  /// Makes the change in the graph it is given: the real one, or a copy of the region for the proof. So it finds its
  /// values by name. What becomes unused is removed later.
  std::function<void(onnx::Graph&)> edit;
  bool changes_result = false;  ///< On purpose: both are run, and how far apart they are is reported.
  /// Of inputs: where the two are the same at these sizes alone. The reason then says so.
  std::map<std::string, Shape, std::less<>> proof_shapes = {};
  /// Not empty: the proof where the engine does not have an operator of the original, so that there is nothing to run.
  std::string where_engine_lacks_it = {};
  std::string place = {};  ///< See Rewrite::place.
  /// See ProofOptions::emptied. Such a proposal is proven by its region alone, as the whole model may have no inputs
  /// that lead there.
  std::vector<onnx::Value*> emptied = {};
};

/// A rewrite that looked like a proven one does not hold, and others have been taken for proven.
class NotAlike : public std::exception {
 public:
  explicit NotAlike(std::string text) : text_(std::move(text)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// The main graph and all sub-graphs, outer ones first. Bodies of functions are not among them.
[[nodiscard]] std::vector<onnx::Graph*> graphs_of(onnx::Model& model);

/// Rewrites that are alike (the same nodes, types, small constants and replacement, weights of the same sizes and
/// signs, and the same shapes but for sizes that no integer of the region names) are proven once; the second, fourth,
/// eighth of a kind and so on by a few runs too. Where such a spot check fails, each of the kind is proven; where some
/// have been made by then, NotAlike is thrown.
class Rewriter {
 public:
  /// All of them have to outlive it.
  Rewriter(const runtime::Engine& engine, onnx::Model& model, const ConvertOptions& options, ConvertReport& report);
  Rewriter(const runtime::Engine&, onnx::Model&, ConvertOptions&&, ConvertReport&) = delete;

  struct Verdict {
    bool proven = false;
    std::string text;
    ProofKind kind = ProofKind::own;
    bool could_not_run = false;  ///< Not a single trial.
  };

  [[nodiscard]] const runtime::Engine& engine() const { return engine_; }
  [[nodiscard]] onnx::Model& model() { return model_; }
  [[nodiscard]] const ConvertOptions& options() const { return options_; }
  /// See graphs_of.
  [[nodiscard]] std::vector<onnx::Graph*> graphs() { return graphs_of(model_); }

  /// All passes follow, once more after the first time.
  void begin_round() { whole_model_proofs_ = 0; }

  /// What follows is done by this pass.
  void begin(std::string pass);

  /// Proves the change on a copy of its region, then makes it. Where it is disproved, or cannot be proven, the model
  /// stays as it is, the report lists it as rejected, and the result is false.
  bool apply(const Proposal& proposal);

  /// What a change is about, as in Rewrite.
  struct Subject {
    std::vector<NodeRef> nodes = {};
    std::string others = {};
  };

  /// Writes down a change that needs no run to prove it, and has been made already.
  void record(Subject subject, std::string replacement, std::string reason, std::string proof);

  void record_rejected(Subject subject, std::string replacement, std::string reason, std::string why);

  /// Runs what lies between values of these names in a model and in a changed copy of it, in a sub-graph too; the whole
  /// models, which may take long, where that cannot be run by itself.
  [[nodiscard]] Verdict prove_values(const onnx::Model& before, const onnx::Model& after,
                                     const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

  /// Writes down what a rewrite assumes, which the user has to know.
  void warn(std::string text);

  void record_rule(RuleOutcome outcome);
  /// What apply has last refused.
  [[nodiscard]] const Rewrite& last_rejected() const;

  /// Whether this pass has proposed the replacement for these nodes before, and it was rejected: passes run several
  /// times, and what was disproved is not tried again. What could not be run may have shapes that are known by then.
  [[nodiscard]] bool was_rejected(const std::vector<NodeRef>& nodes, const std::string& replacement) const;

  /// Keeps the nearest of a library and the nearest of Graft's own for each anchor node. Those of nodes that are
  /// rewritten after all are dropped.
  void near_miss(const std::string& pattern, const onnx::NearMiss& near);

  /// Why a plugin may not take the place of a node of this graph: the graph is the body of a node in which TensorRT
  /// builds none. Empty where it may.
  [[nodiscard]] std::string refusal_of_plugin_in(const onnx::Graph& graph) const;

  /// Whether a fusion of what computes y from x into `op` leads anywhere: without plugins, or where none may stand,
  /// only where TensorRT has the operator itself; and only in an operator set that functions can be written in. Notes
  /// as a choice of native layers that y lies where no plugin may stand.
  [[nodiscard]] bool is_wanted(const Operator& op, const FunctionInputs& inputs, const onnx::Value& x,
                               const onnx::Value& y);
  void choose(const NodeRef& node, std::string_view op, OperatorChoice::Kind kind, std::string reason);

  /// Bytes that the constants of the model may take in all when they are folded. The first pass that asks says how
  /// many: one after the other would double them otherwise.
  [[nodiscard]] std::int64_t most_constant_bytes(std::int64_t if_first);

  /// Numbers in the constants of everything that was lowered, in all rounds.
  [[nodiscard]] std::int64_t& lowered_numbers() { return lowered_numbers_; }

  /// Of regions, by region_text.
  [[nodiscard]] std::unordered_map<std::string, LearnedMovement>& learned_movements() { return learned_movements_; }

  void end();     ///< Of a pass that changed something: removes what became unused.
  void finish();  ///< Of all passes: the near misses go to the report.

 private:
  /// Of a rewrite by the pass that runs.
  [[nodiscard]] std::string key_of(const std::vector<NodeRef>& nodes, const std::string& replacement) const;
  void reject(Rewrite rewrite, bool is_final);
  [[nodiscard]] Verdict prove(const Proposal& proposal);
  [[nodiscard]] Verdict prove_region_of(const Proposal& proposal, const std::vector<const onnx::Value*>& inputs);
  [[nodiscard]] bool compiles(const onnx::Model& region) const;
  [[nodiscard]] Verdict prove_models(const onnx::Model& before, const onnx::Model& after);
  [[nodiscard]] Verdict prove_whole_model(const Proposal& proposal, const std::string& why);
  [[nodiscard]] Verdict compare_models(const onnx::Model& before, const onnx::Model& after, bool changes_result);

  /// Rewrites that are alike.
  struct ProvenKind {
    std::string first;  ///< The nodes of the one that was proven.
    std::string text;
    std::size_t members = 1;
    bool holds = true;  ///< Of every spot check.
  };
  [[nodiscard]] Verdict prove_regions(const onnx::Model& before, const onnx::Model& after, bool changes_result,
                                      const std::string& nodes, const std::vector<onnx::Value*>& emptied = {});
  [[nodiscard]] std::optional<Verdict> prove_alike(ProvenKind& kind, const onnx::Model& before,
                                                   const onnx::Model& after);

  const runtime::Engine& engine_;
  onnx::Model& model_;
  const ConvertOptions& options_;
  ConvertReport& report_;
  std::unordered_map<std::string, LearnedMovement> learned_movements_;
  std::string pass_;
  std::vector<std::string> anchors_;  // in the order of their first note
  // Of a library, and of Graft's own.
  std::unordered_map<std::string, std::array<std::optional<NearMissNote>, 2>> notes_;
  std::unordered_set<std::string> rewritten_;  // anchors
  // Of rejected rewrites, by key_of: where the report has them, and whether they were disproved and not just not run.
  struct Rejection {
    std::size_t index = 0;
    bool is_final = true;
  };
  std::unordered_map<std::string, Rejection> rejections_;
  std::size_t last_rejected_ = 0;
  std::unordered_set<std::string> kept_native_;        // operators and inputs of fusions in bodies that were left out
  std::unordered_map<std::string, Verdict> verdicts_;  // by the text of both regions
  std::unordered_map<std::string, ProvenKind> kinds_;  // the same without the values of weights
  std::size_t whole_model_proofs_ = 0;
  std::optional<std::int64_t> most_constant_bytes_;
  std::int64_t lowered_numbers_ = 0;
};

/// Replaces what gives `output` by a node of `op` that reads `inputs`; in the manner of Proposal::edit.
[[nodiscard]] std::function<void(onnx::Graph&)> operator_edit(std::shared_ptr<const Operator> op,
                                                              std::vector<std::string> inputs, std::string output);

/// A region as text in which names play no part: the same for two that compute the same on the same shapes.
[[nodiscard]] std::string region_text(const onnx::Model& region);

/// `L2Normalize<axes=[1], epsilon=1e-12, epsilon_mode="max">`.
[[nodiscard]] std::string to_text(const Operator& op);

/// Both shapes are known and the same, dimension by dimension; two dimensions of which nothing is known are not.
[[nodiscard]] bool same_shape(const onnx::Value& a, const onnx::Value& b);

}  // namespace graft::passes
