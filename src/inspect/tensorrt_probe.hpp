// What the real TensorRT says of each node: its parser, and its builder.
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

#include "inspect/plugin_causes.hpp"
#include "inspect/size_ranges.hpp"
#include "inspect/trials.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

enum class ProbeLevel : std::uint8_t { rule, parser, builder };
[[nodiscard]] std::string_view name_of(ProbeLevel truth);

/// Whether a trial shows that TensorRT does not take a model, as far as that level judges.
[[nodiscard]] bool fails(ProbeLevel level, const Trial& trial);

/// A part of the model that TensorRT does not take, as small as it was found.
struct Finding {
  std::vector<const onnx::Node*> nodes;
  const onnx::Node* inside = nullptr;  ///< The one in a branch, a body or the function of `nodes` that does not run.
  Outcome outcome = Outcome::refused;
  std::string words;  ///< TensorRT's own.
  std::optional<PluginCause> cause;
  const onnx::Node* as = nullptr;  ///< The node that was asked about in the place of this one, which is the same.
  std::shared_ptr<const onnx::Model> part =
      {};  ///< The smallest that does it, where `inside` is in a branch or a body.
};

struct ProbeReport {
  std::vector<Finding> findings;
  std::map<const onnx::Node*, std::string> not_asked;  ///< Why TensorRT could not be asked about a node.
  std::map<const onnx::Node*, std::string>
      supposed;                                   ///< What was supposed of a bad node before it: "'a' made f32 1 x 4".
  std::map<std::string, nlohmann::json> plugins;  ///< The plugin layers, by the name of the node.
  std::set<const onnx::Node*> over_budget;        ///< Of those not asked: because the budget was spent.
  std::string not_built;  ///< Why the whole model was not built where nothing was found to fail; empty otherwise.
  std::vector<std::string> ranges;  ///< NAME=MIN..OPT..MAX that the whole model was built for.
  std::size_t pieces = 0;           ///< In which the builder took what it takes; 1 where that was built together.
  std::set<const onnx::Node*> runs_inside;  ///< Nodes in branches and bodies that run, beside one that does not.
};

/// Asks about the whole model first, then about what is left without the parts that were found to fail. Every node of
/// the main graph has a name that no other has, and its types and shapes are inferred; those of what plugins make are
/// added as TensorRT tells them. What a plugin would make that TensorRT does not take is supposed, where nothing says
/// it: what the plugin makes that was meant, or the like of its first input.
class TensorRTProbe {
 public:
  TensorRTProbe(onnx::Model& model, Trials& trials, SizeRanges& ranges);

  /// How the builder is asked.
  enum class Order : std::uint8_t {
    known_first,  ///< Nodes that are known to fail, then the rest, in pieces where the whole takes too long.
    whole_first,  ///< The whole model, with each set of suggested ranges; the nodes only where it does not build.
    whole_only,   ///< The whole model, which is not searched for the nodes that fail.
  };
  [[nodiscard]] ProbeReport run(ProbeLevel level, Order order = Order::known_first);

  using Nodes = std::vector<const onnx::Node*>;
  /// The smallest model that shows a finding.
  [[nodiscard]] onnx::Model smallest_part(const Finding& finding) const;

 private:
  /// Nodes as a model of their own, with what they need to have their sizes.
  [[nodiscard]] onnx::Model part_of(const Nodes& nodes) const;
  void ask_parser();
  void ask_builder();
  /// Whether the whole model builds. The parser need not be asked then.
  [[nodiscard]] bool builds_at_once();
  /// Whether the whole model is answered for: it builds, or it does not for want of time or of sizes.
  [[nodiscard]] bool ask_about_whole();
  void ask_about_known();
  /// Builds what is left of the nodes, together or in pieces where that takes too long, or where the sizes that
  /// are supposed contradict each other; how many pieces there were. Finds what fails of them on the way.
  std::size_t build_left_of(const Nodes& nodes);
  /// It counts as not asked: what computes its sizes with it gives none that fit together.
  void leave_without_sizes(const onnx::Node& node, const Trial& trial);
  /// Adds at least one finding of nodes that fail together.
  void find_failing(const Nodes& nodes, Trial whole);
  [[nodiscard]] static std::array<Nodes, 2> halves_of(const Nodes& nodes);
  void add_with_alike(Finding found);
  /// What is neither bad nor built stays without an answer.
  void leave_unanswered(const BudgetSpent& spent);
  [[nodiscard]] Nodes left() const;
  [[nodiscard]] Nodes left_of(const Nodes& nodes) const;
  /// Whether the answer names a node that was not known to be bad.
  bool add_refusals(const nlohmann::json& answer);
  /// The nodes that the parser refuses like this one: by the same rule, or because they are the same.
  [[nodiscard]] std::vector<Finding> refusals_alike(const Finding& finding) const;
  void learn_types_of_plugins();
  /// Takes the types and shapes of what a plugin layer makes over into the model, where it does not know them.
  bool learn_types(const nlohmann::json& plugin);
  void infer();
  void add(Finding finding);
  /// False where a refusal may come from what was supposed alone; the node counts as not asked then.
  [[nodiscard]] bool is_certain(const Finding& finding) const;
  /// Whether anything new is known of what bad nodes would make.
  bool suppose_outputs();
  /// What is supposed of one; empty if nothing new.
  [[nodiscard]] std::string suppose_outputs_of(const onnx::Node& node);
  [[nodiscard]] std::string try_meant_plugin(const onnx::Node& node);
  void set_aside();
  [[nodiscard]] Trial try_nodes(ProbeLevel level, const Nodes& nodes);
  /// In this share of the time that is left.
  [[nodiscard]] Trial try_nodes(ProbeLevel level, const Nodes& nodes, double share);
  /// The nodes that TensorRT names, and the plugins, which fail by themselves too; one of them, or all that hang.
  [[nodiscard]] std::vector<Finding> find_suspects(ProbeLevel level, const Nodes& nodes, const Trial& whole);
  /// As few nodes as fail together.
  [[nodiscard]] Finding find_smallest(ProbeLevel level, const Nodes& nodes, Trial whole);
  /// What the builder says of the nodes alike to one that it does not take, most of which it need not be asked about.
  [[nodiscard]] std::vector<Finding> findings_alike(const Finding& finding);
  /// The same finding, or those in the branches or the body of its node, each of which is asked about as a model.
  [[nodiscard]] std::vector<Finding> look_inside(Finding finding);
  [[nodiscard]] std::vector<Finding> ask_inside(const onnx::Node& node, std::size_t subgraph);
  [[nodiscard]] std::optional<onnx::Model> alone(const onnx::Node& outer, const onnx::Node& inside) const;
  [[nodiscard]] std::optional<onnx::Model> inside_of(const onnx::Node& node, std::size_t subgraph) const;
  [[nodiscard]] Nodes suspects(const Nodes& nodes, const nlohmann::json& answer) const;
  [[nodiscard]] Finding finding_of(const Nodes& part, const Trial& trial) const;
  /// The creator of a node, or of one inside it; null where it is no plugin.
  [[nodiscard]] const nlohmann::json* creator_in(const onnx::Node& node) const;
  /// The node of the main graph that an error is about, and the one inside it if it is about that; null if unknown.
  [[nodiscard]] std::pair<const onnx::Node*, const onnx::Node*> named_by(const nlohmann::json& error) const;
  [[nodiscard]] Finding refusal(const onnx::Node& node, const onnx::Node* inside, const nlohmann::json& error,
                                const nlohmann::json& answer);
  [[nodiscard]] std::string printed_of(const onnx::Node& node, const nlohmann::json& answer);
  void find_number_of_inputs(const onnx::Node& node, PluginCause& cause);

  onnx::Model& model_;
  Trials& trials_;
  SizeRanges& ranges_;
  std::vector<onnx::Node*> nodes_;
  std::map<std::string, const onnx::Node*, std::less<>> by_name_;  // inner nodes lead to the outer one
  std::set<const onnx::Node*> bad_;
  std::set<const onnx::Node*> built_;  // in one part or another
  std::string open_failure_;           // TensorRT's words of nodes together of which one is being searched for
  std::map<const onnx::Node*, std::string> uncertain_;    // refused, and perhaps for what was supposed
  std::map<const onnx::Node*, std::string> supposed_of_;  // of bad nodes: what they were supposed to make
  std::map<const onnx::Node*, MeantPlugin> meant_;        // of bad nodes: the plugin that was meant
  std::optional<Trial> first_build_;                      // of the whole model, before the parser was asked
  ProbeReport report_;
};

}  // namespace graft::inspect
