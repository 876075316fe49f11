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

/// Returns whether a trial shows that TensorRT does not accept a model. A refusal by the parser counts only if `level`
/// is `parser`. A trial does not count if it failed because of assumed sizes, or if it did not end within the fraction
/// of the remaining time that it had.
[[nodiscard]] bool fails(Judge level, const Trial& trial);

/// A failure of TensorRT: the smallest set of nodes that was found to fail, and how it fails.
struct Finding {
  std::vector<const onnx::Node*> nodes;
  const onnx::Node* inside = nullptr;  ///< The failing node in a branch, a body or the function of `nodes`.
  Outcome outcome = Outcome::refused;
  std::string words;  ///< TensorRT's messages.
  std::optional<PluginCause> cause;
  const onnx::Node* as = nullptr;        ///< The node that was probed in place of this one, because both are alike.
  std::vector<std::string> ranges = {};  ///< Ranges for which the build of `nodes` failed, as NAME=MIN..OPT..MAX.
  /// The smallest model that fails, if `inside` is in a branch or a body; otherwise null.
  std::shared_ptr<const onnx::Model> part = {};
};

struct ProbeReport {
  std::vector<Finding> findings;
  std::map<const onnx::Node*, std::string> not_asked;  ///< Why there is no TensorRT verdict on a node.
  /// Maps each node that was probed with an assumption about a failing node before it to a clause that states the
  /// assumption, such as "'a' is the plugin P of version 1".
  std::map<const onnx::Node*, std::string> supposed;
  std::map<std::string, nlohmann::json> plugins;  ///< The plugin layers, by the name of the layer.
  std::set<const onnx::Node*> over_budget;        ///< The nodes of `not_asked` for which the budget was spent.
  std::string not_built;  ///< Why the whole model was not built although nothing was found to fail; empty otherwise.
  std::vector<std::string> ranges;  ///< Ranges for which the whole model was built, as NAME=MIN..OPT..MAX.
  /// The sets of ranges with which the build of the whole model failed, each as "NAME=MIN..OPT..MAX,
  /// NAME=MIN..OPT..MAX".
  std::vector<std::string> failing_ranges;
  /// The number of models into which the accepted nodes were divided to build them; 1 if they were built together.
  std::size_t pieces = 0;
  /// Clauses on tensors of the main graph whose shape or type in TensorRT differs from ONNX's, by the name of the
  /// tensor.
  std::map<std::string, std::string, std::less<>> different;
  /// Nodes that TensorRT runs although they are in a branch or body that also contains a failing node.
  std::set<const onnx::Node*> runs_inside;
};

/// Finds the nodes of a model that TensorRT does not accept. Tries to build the whole model, and then models without
/// the nodes that were found to fail. All nodes of the main graph must have unique names, and types and shapes must
/// have been inferred; types and shapes of plugin outputs are added as TensorRT reports them. If TensorRT does not
/// accept a plugin node and the types of its outputs are unknown, the probe assumes the types of the plugin that the
/// user probably meant. Without such a plugin, it assumes the type and shape of the node's first input for which both
/// are known.
class TensorRTProbe {
 public:
  TensorRTProbe(onnx::Model& model, Trials& trials, SizeRanges& ranges);

  /// The order in which the whole model and models of some of its nodes are built.
  enum class Order : std::uint8_t {
    known_first,  ///< Nodes that are known to fail, then the remaining nodes, in parts if one build takes too long.
    whole_first,  ///< The whole model, with each set of suggested ranges; single nodes only if it does not build.
    whole_only,   ///< The whole model only; the failing nodes are not searched for.
  };
  [[nodiscard]] ProbeReport run(Judge level, Order order = Order::known_first);

  using Nodes = std::vector<const onnx::Node*>;
  /// Returns the smallest model that was found to fail in the same way as a finding.
  [[nodiscard]] onnx::Model smallest_part(const Finding& finding) const;

 private:
  /// Returns a model of `nodes` and of the nodes that compute sizes for them, see with_sizes().
  [[nodiscard]] onnx::Model part_of(const Nodes& nodes) const;
  void ask_parser();
  void ask_builder();
  /// Builds the whole model and returns whether TensorRT accepted it. The parser then need not be called separately.
  [[nodiscard]] bool builds_at_once();
  /// Stores the ranges of `trial`, a build of the whole model, in the report, and returns whether it succeeded.
  bool record_whole(const Trial& trial);
  /// Builds the whole model. Returns true if no further trials are needed, because the model builds or because the time
  /// or suitable sizes are missing.
  [[nodiscard]] bool ask_about_whole();
  /// Returns whether rules say that the node, or a node inside it, fails.
  [[nodiscard]] bool is_known_to_fail_inside(const onnx::Node& node) const;
  void ask_about_known();
  /// Builds the nodes of `nodes` that are not known to fail: in one model, or in several if one build takes too long or
  /// the assumed sizes are inconsistent. Adds findings on the nodes that fail, and returns the number of models.
  std::size_t build_left_of(const Nodes& nodes);
  /// Adds the node to ProbeReport::not_asked, because the sizes that are assumed for its inputs contradict each other,
  /// as the messages of `trial` show.
  void leave_without_sizes(const onnx::Node& node, const Trial& trial);
  /// Searches the failing nodes among `nodes`, which fail together in the trial `whole`, and adds at least one finding.
  void find_failing(const Nodes& nodes, Trial whole);
  [[nodiscard]] static std::array<Nodes, 2> halves_of(const Nodes& nodes);
  void add_with_alike(Finding found);
  /// Returns whether the nodes of a finding fail with every set of suggested sizes. If they build with an earlier set,
  /// adds them to ProbeReport::not_asked. If they build with a later set, throws BuildsWithOtherSizes: the whole model
  /// fails with that set too, so other nodes must be the cause, and the search starts again with it.
  [[nodiscard]] bool fails_with_other_sizes(const Finding& finding);
  /// Adds every node that has neither failed nor been built to ProbeReport::not_asked, because the budget of builds or
  /// time is used up.
  void leave_unanswered(const BudgetSpent& spent);
  [[nodiscard]] Nodes left() const;
  [[nodiscard]] Nodes left_of(const Nodes& nodes) const;
  /// Adds a finding for each error of the parser in `answer`. Returns whether an error names a node that was not known
  /// to fail before.
  bool add_refusals(const nlohmann::json& answer);
  /// Returns findings on other nodes that the parser would refuse in the same way: by the same rule, or because they
  /// are equal except for names (see likeness_of).
  [[nodiscard]] std::vector<Finding> refusals_alike(const Finding& finding) const;
  void learn_types_of_plugins();
  /// Copies the types and shapes of a plugin layer's outputs to values of unknown type. Returns whether a value
  /// changed.
  bool learn_types(const nlohmann::json& plugin);
  void infer();
  void add(Finding finding);
  /// Returns whether the nodes of a finding fail for another reason than the types and shapes that the probe assumed
  /// for outputs of earlier nodes.
  [[nodiscard]] bool is_certain(const Finding& finding) const;
  /// Assumes types and shapes for the outputs of failing nodes, so that the nodes after them can be probed. Returns
  /// whether anything new was assumed.
  bool suppose_outputs();
  /// Assumes types and shapes for the outputs of one failing node. Returns a description of the assumption, or an empty
  /// string if nothing new was assumed.
  [[nodiscard]] std::string suppose_outputs_of(const onnx::Node& node);
  [[nodiscard]] std::string try_meant_plugin(const onnx::Node& node);
  void set_aside();
  [[nodiscard]] Trial try_nodes(Judge level, const Nodes& nodes);
  /// Parses `nodes` as a model or, if `level` is `builder`, also builds them, within the fraction `share` of the
  /// remaining time.
  [[nodiscard]] Trial try_nodes(Judge level, const Nodes& nodes, double share);
  /// Returns findings on those suspects (nodes that TensorRT's messages name, and plugins) that also fail alone: the
  /// first one, or all of them if the trial `whole` hung.
  [[nodiscard]] std::vector<Finding> find_suspects(Judge level, const Nodes& nodes, const Trial& whole);
  /// Returns a finding on the smallest set of nodes found by bisection that fails like `whole`, the trial of `nodes`.
  [[nodiscard]] Finding find_smallest(Judge level, const Nodes& nodes, Trial whole);
  /// Returns findings on nodes that are equal, except for names, to a node that the builder does not accept. Most of
  /// these nodes are not probed themselves.
  [[nodiscard]] std::vector<Finding> findings_alike(const Finding& finding);
  /// Probes each branch or body of the failing node as a separate model, and returns the findings on nodes inside it,
  /// or `finding` itself if there are none.
  [[nodiscard]] std::vector<Finding> look_inside(Finding finding);
  /// Returns findings on the plugins inside a node that does not build although each of its branches or bodies builds
  /// as a separate model. TensorRT then builds these plugins in the main graph only.
  [[nodiscard]] std::vector<Finding> plugins_inside(const Finding& finding) const;
  [[nodiscard]] std::vector<Finding> ask_inside(const onnx::Node& node, std::size_t subgraph);
  [[nodiscard]] std::optional<onnx::Model> alone(const onnx::Node& outer, const onnx::Node& inside) const;
  [[nodiscard]] std::optional<onnx::Model> inside_of(const onnx::Node& node, std::size_t subgraph) const;
  [[nodiscard]] Nodes suspects(const Nodes& nodes, const nlohmann::json& answer) const;
  [[nodiscard]] Finding finding_of(const Nodes& part, const Trial& trial) const;
  /// Returns the data of the plugin creator for a node or for a node inside it, or null if no creator is known.
  [[nodiscard]] const nlohmann::json* creator_in(const onnx::Node& node) const;
  /// Returns the node of the main graph to which an error of the parser refers and, if it refers to a node inside that
  /// node, the inner node. Both are null if unknown.
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
