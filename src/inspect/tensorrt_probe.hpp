// Determines which nodes the parser and the builder of the real TensorRT do not accept.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graft/report/inspect.hpp"
#include "inspect/plugin_causes.hpp"
#include "inspect/size_ranges.hpp"
#include "inspect/trials.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

using report::Judge;

/// Returns whether a trial shows that TensorRT does not accept a model. A refusal by the parser counts at the level of
/// the parser only; a trial that was cut short or that failed for assumed sizes does not count.
[[nodiscard]] bool fails(Judge level, const Trial& trial);

/// A part of the model that TensorRT does not accept, as small as it was found.
struct Finding {
  std::vector<const onnx::Node*> nodes;
  const onnx::Node* inside = nullptr;  ///< The failing node in a branch, a body or the function of `nodes`.
  Outcome outcome = Outcome::refused;
  std::string words;  ///< TensorRT's messages.
  std::optional<PluginCause> cause;
  const onnx::Node* as = nullptr;        ///< The node that was probed in place of this one, because both are alike.
  std::vector<std::string> ranges = {};  ///< Ranges for which the build of `nodes` failed, as NAME=MIN..OPT..MAX.
  /// The smallest model that fails, if `inside` is in a branch or a body.
  std::shared_ptr<const onnx::Model> part = {};
};

struct ProbeReport {
  std::vector<Finding> findings;
  std::map<const onnx::Node*, std::string> not_asked;  ///< Why there is no TensorRT verdict on a node.
  /// The assumption about a failing node before a probed node, such as "'a' is the plugin P of version 1".
  std::map<const onnx::Node*, std::string> supposed;
  std::map<std::string, nlohmann::json> plugins;  ///< The plugin layers, by the name of the layer.
  std::set<const onnx::Node*> over_budget;        ///< The nodes of `not_asked` for which the budget was spent.
  std::string not_built;  ///< Why the whole model was not built although nothing was found to fail; empty otherwise.
  std::vector<std::string> ranges;  ///< Ranges for which the whole model was built, as NAME=MIN..OPT..MAX.
  /// Sets of ranges for which the whole model did not build, each as "NAME=MIN..OPT..MAX, NAME=MIN..OPT..MAX".
  std::vector<std::string> failing_ranges;
  /// Number of parts in which the builder built all accepted nodes; 1 if it built them together.
  std::size_t pieces = 0;
  /// Clauses on the tensors of the main graph that differ from ONNX's in what TensorRT built, by the tensor's name.
  std::map<std::string, std::string, std::less<>> different;
  /// Nodes that run, in branches and bodies that also hold a node that does not run.
  std::set<const onnx::Node*> runs_inside;
};

/// Probes TensorRT with the whole model first, then with the model without the parts that were found to fail. Every
/// node of the main graph must have a unique name, and inferred types and shapes; types and shapes of plugin outputs
/// are added as TensorRT reports them. The outputs of a plugin node that TensorRT does not accept are assumed where
/// they are unknown: they are those of the plugin that was meant, or have the type and shape of the node's first input
/// of known type and shape.
class TensorRTProbe {
 public:
  TensorRTProbe(onnx::Model& model, Trials& trials, SizeRanges& ranges);

  /// The order in which the builder gets the model and its parts.
  enum class Order : std::uint8_t {
    known_first,  ///< Nodes that are known to fail, then the remaining nodes, in parts if one build takes too long.
    whole_first,  ///< The whole model, with each set of suggested ranges; single nodes only if it does not build.
    whole_only,   ///< The whole model only; the failing nodes are not searched for.
  };
  [[nodiscard]] ProbeReport run(Judge level, Order order = Order::known_first);

  using Nodes = std::vector<const onnx::Node*>;
  /// Returns the smallest model that shows a finding.
  [[nodiscard]] onnx::Model smallest_part(const Finding& finding) const;

 private:
  /// Returns a model of `nodes` and of the nodes that compute sizes for them (with_sizes()).
  [[nodiscard]] onnx::Model part_of(const Nodes& nodes) const;
  void ask_parser();
  void ask_builder();
  /// Returns whether the whole model builds. The parser need not run then.
  [[nodiscard]] bool builds_at_once();
  /// Records the ranges of a build of the whole model, successful or not. Returns whether it succeeded.
  bool record_whole(const Trial& trial);
  /// Builds the whole model. Returns true if that settles the probe: it builds, or it does not for lack of time or of
  /// suitable sizes.
  [[nodiscard]] bool ask_about_whole();
  /// Returns whether a rule states that the node, or a node inside it, fails.
  [[nodiscard]] bool is_known_to_fail_inside(const onnx::Node& node) const;
  void ask_about_known();
  /// Builds the nodes that are left of `nodes`, in parts if one build takes too long or if the assumed sizes contradict
  /// each other. Adds findings on the nodes that fail. Returns the number of parts.
  std::size_t build_left_of(const Nodes& nodes);
  /// Marks a node as not_asked: the sizes that are assumed for its inputs contradict each other.
  void leave_without_sizes(const onnx::Node& node, const Trial& trial);
  /// Adds at least one finding of nodes that fail together.
  void find_failing(const Nodes& nodes, Trial whole);
  [[nodiscard]] static std::array<Nodes, 2> halves_of(const Nodes& nodes);
  void add_with_alike(Finding found);
  /// Returns whether the failing nodes also fail with every other set of suggested sizes. The whole model fails with
  /// each set: where the nodes build with a later set, other nodes are at fault, and BuildsWithOtherSizes is thrown so
  /// that the search starts again with that set. Where they build with an earlier set, they are marked as not_asked.
  [[nodiscard]] bool fails_with_other_sizes(const Finding& finding);
  /// Marks every node that neither failed nor was built as not_asked.
  void leave_unanswered(const BudgetSpent& spent);
  [[nodiscard]] Nodes left() const;
  [[nodiscard]] Nodes left_of(const Nodes& nodes) const;
  /// Adds a finding for each error of the parser. Returns whether an error names a node that was not known to fail.
  bool add_refusals(const nlohmann::json& answer);
  /// Returns findings on nodes that the parser refuses like this one: by the same rule, or because they are alike.
  [[nodiscard]] std::vector<Finding> refusals_alike(const Finding& finding) const;
  void learn_types_of_plugins();
  /// Copies types and shapes of a plugin layer's outputs to values of unknown type. Returns whether it copied any.
  bool learn_types(const nlohmann::json& plugin);
  void infer();
  void add(Finding finding);
  /// Returns whether a refusal cannot come from assumed types alone. Otherwise the node counts as not_asked.
  [[nodiscard]] bool is_certain(const Finding& finding) const;
  /// Assumes types and shapes of the outputs of failing nodes. Returns whether anything new was assumed.
  bool suppose_outputs();
  /// Assumes them for one node. Returns a description of what was assumed; empty if nothing new.
  [[nodiscard]] std::string suppose_outputs_of(const onnx::Node& node);
  [[nodiscard]] std::string try_meant_plugin(const onnx::Node& node);
  void set_aside();
  [[nodiscard]] Trial try_nodes(Judge level, const Nodes& nodes);
  /// Uses at most this share of the time that is left.
  [[nodiscard]] Trial try_nodes(Judge level, const Nodes& nodes, double share);
  /// Returns findings on nodes that TensorRT names and on plugins, if they fail alone too: the first of them, or all of
  /// them if `whole` hung.
  [[nodiscard]] std::vector<Finding> find_suspects(Judge level, const Nodes& nodes, const Trial& whole);
  /// Returns a finding on as few nodes as fail together.
  [[nodiscard]] Finding find_smallest(Judge level, const Nodes& nodes, Trial whole);
  /// Returns findings on the nodes alike to one that the builder does not accept. Most of these nodes are not probed.
  [[nodiscard]] std::vector<Finding> findings_alike(const Finding& finding);
  /// Returns the findings in the branches or the body of the node, each of which is probed as a model, or `finding`
  /// itself if there are none.
  [[nodiscard]] std::vector<Finding> look_inside(Finding finding);
  /// Returns findings on the plugins in the branches or the body of a node that does not build, where each branch or
  /// body builds as a model of its own: TensorRT builds these plugins in the main graph only.
  [[nodiscard]] std::vector<Finding> plugins_inside(const Finding& finding) const;
  [[nodiscard]] std::vector<Finding> ask_inside(const onnx::Node& node, std::size_t subgraph);
  [[nodiscard]] std::optional<onnx::Model> alone(const onnx::Node& outer, const onnx::Node& inside) const;
  [[nodiscard]] std::optional<onnx::Model> inside_of(const onnx::Node& node, std::size_t subgraph) const;
  [[nodiscard]] Nodes suspects(const Nodes& nodes, const nlohmann::json& answer) const;
  [[nodiscard]] Finding finding_of(const Nodes& part, const Trial& trial) const;
  /// Returns the plugin creator of a node, or of a node inside it, or null.
  [[nodiscard]] const nlohmann::json* creator_in(const onnx::Node& node) const;
  /// Returns the node of the main graph that an error is about, and the node inside it if the error is about that node;
  /// null if unknown.
  [[nodiscard]] std::pair<const onnx::Node*, const onnx::Node*> named_by(const nlohmann::json& error) const;
  [[nodiscard]] Finding refusal(const onnx::Node& node, const onnx::Node* inside, const nlohmann::json& error,
                                const nlohmann::json& answer);
  [[nodiscard]] std::string printed_of(const onnx::Node& node, const nlohmann::json& answer);
  void find_number_of_inputs(const onnx::Node& node, PluginCause& cause);

  onnx::Model& model_;
  Trials& trials_;
  SizeRanges& ranges_;
  std::vector<onnx::Node*> nodes_;
  std::map<std::string, const onnx::Node*, std::less<>> by_name_;  // the name of an inner node maps to the outer one
  std::set<const onnx::Node*> bad_;
  std::set<const onnx::Node*> built_;  // nodes that were built in any part
  // TensorRT's message on the nodes among which a failing one is being searched for
  std::string open_failure_;
  std::map<const onnx::Node*, std::string> uncertain_;    // failed, perhaps only because of what was assumed
  std::set<const onnx::Node*> without_sizes_;             // the nodes of uncertain_ that leave_without_sizes() marked
  std::map<const onnx::Node*, std::string> supposed_of_;  // what was assumed of the outputs of a failing node
  std::map<const onnx::Node*, MeantPlugin> meant_;        // the plugin that a failing node means
  std::optional<Trial> first_build_;                      // the build of the whole model, before any parse
  ProbeReport report_;
};

}  // namespace graft::inspect
