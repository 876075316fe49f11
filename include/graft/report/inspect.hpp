// The report of `inspect`: how TensorRT runs each node of a model.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/field.hpp"
#include "graft/report/model.hpp"
#include "graft/report/node_cost.hpp"
#include "graft/report/tensorrt.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/model.hpp"

namespace graft::report {

/// How a node runs, from best to worst.
enum class Support : std::uint8_t {
  native,   ///< TensorRT runs the node unchanged.
  lowered,  ///< `convert` replaces the node with native layers.
  plugin,   ///< A plugin runs the node.
  unknown,  ///< The result is unknown: no rule covers the node, and TensorRT was not run.
  /// The result is unknown: TensorRT was run on other nodes, and could not be run on this one.
  not_asked,
  /// Neither TensorRT nor Graft runs the node, according to the rules. The values below require a run of TensorRT.
  unsupported,
  refused,  ///< TensorRT's parser refuses the node.
  fails,    ///< TensorRT's parser accepts the node, but the build fails.
  hangs,    ///< TensorRT does not finish within the time limit.
  crashes,  ///< TensorRT's process crashes.
};
inline constexpr std::array all_supports{Support::native,    Support::lowered,     Support::plugin,  Support::unknown,
                                         Support::not_asked, Support::unsupported, Support::refused, Support::fails,
                                         Support::hangs,     Support::crashes};

/// Returns the verdict for messages, such as "native" or "not asked".
[[nodiscard]] inline std::string to_string(Support support) {
  switch (support) {
    case Support::native: return "native";
    case Support::lowered: return "lowered";
    case Support::plugin: return "plugin";
    case Support::unknown: return "unknown";
    case Support::not_asked: return "not asked";
    case Support::unsupported: return "unsupported";
    case Support::refused: return "refused";
    case Support::fails: return "fails";
    case Support::hangs: return "hangs";
    case Support::crashes: return "crashes";
  }
  return "";
}

/// Returns whether a node with this verdict keeps the network from running.
[[nodiscard]] constexpr bool is_bad(Support verdict) { return verdict >= Support::unsupported; }
/// Returns true for `unknown` and `not_asked`, the verdicts from which it does not follow whether the node runs.
[[nodiscard]] constexpr bool is_open(Support verdict) {
  return verdict == Support::unknown || verdict == Support::not_asked;
}

/// Returns whether only a run of TensorRT, and not the rules, can give this verdict.
[[nodiscard]] constexpr bool is_by_tensorrt(Support verdict) {
  return verdict == Support::not_asked || verdict > Support::unsupported;
}
/// Returns a clause about what TensorRT does with a node that has this verdict, such as "TensorRT's parser refuses it".
/// For a verdict that is no failure of TensorRT, the clause is "TensorRT accepts it".
[[nodiscard]] constexpr std::string_view what_happened(Support verdict) {
  switch (verdict) {
    case Support::refused: return "TensorRT's parser refuses it";
    case Support::fails: return "TensorRT's builder fails";
    case Support::hangs: return "TensorRT hangs";
    case Support::crashes: return "TensorRT crashes";
    default: return "TensorRT accepts it";
  }
}

/// The source of verdicts.
enum class Judge : std::uint8_t {
  /// TensorRT's parser and builder judge within the budget, for suggested sizes if none are given. If no TensorRT is
  /// installed or a release is named, the rules judge. No verdict in a report has this value.
  automatic,
  rule,     ///< Graft's rules, without TensorRT.
  parser,   ///< TensorRT's parser, followed by the rules for nodes that the parser accepts.
  builder,  ///< TensorRT's parser and builder.
};

/// Returns "auto", "rule", "parser" or "builder".
[[nodiscard]] inline std::string to_string(Judge judge) {
  switch (judge) {
    case Judge::automatic: return "auto";
    case Judge::rule: return "rule";
    case Judge::parser: return "parser";
    case Judge::builder: return "builder";
  }
  return "";
}

/// The NodeSupport::advice on an invalid node, for example one with a missing attribute or contradicting types.
inline constexpr auto advice_on_fault = "correct the node in the program that wrote the model";

/// The NodeSupport::cause of a node whose operator no loaded library has.
inline constexpr auto library_missing = "library_missing";

/// The NodeSupport::cause of a node that the release accepts and computes wrongly.
inline constexpr auto computed_wrongly = "computed wrongly";

/// The verdict on a node.
struct NodeSupport {
  NodeRef node;
  std::string op;
  Support support = Support::native;
  std::string reason;
  std::string advice;
  Judge judge = Judge::rule;
  std::string tensorrt = {};
  std::string plugin = {};
  std::string cause = {};
  std::optional<NodeRef> same_as = {};
  std::optional<NodeCost> cost = {};

  [[nodiscard]] std::string same_name() const { return same_as ? same_as->name : std::string(); }

  static constexpr auto fields() {
    return std::tuple{
        field("node", &NodeSupport::node, "The node of the model."),
        field("op", "operator", &NodeSupport::op,
              "The operator, such as 'Conv' or 'graft::L2Normalize'. A call of an operator's function has the "
              "operator's own name."),
        field("support", "verdict", &NodeSupport::support,
              "How the node runs: 'native', 'lowered', 'plugin', 'unknown', 'not asked', 'unsupported', 'refused', "
              "'fails', 'hangs' or 'crashes'."),
        field("reason", &NodeSupport::reason, "The reason for the verdict; empty if there is nothing to report."),
        field("advice", &NodeSupport::advice, "How to fix the node; empty if there is nothing to fix."),
        field("judge", "truth", &NodeSupport::judge, "The source of the verdict: 'rule', 'parser' or 'builder'."),
        field("tensorrt", &NodeSupport::tensorrt, "TensorRT's messages about the node."),
        field("plugin", &NodeSupport::plugin, "The plugin that runs the node, and the library that it comes from."),
        field("cause", &NodeSupport::cause,
              "A keyword for the problem of a plugin node, or 'computed wrongly'; empty without a problem."),
        field("same_as", nullptr, &NodeSupport::same_as,
              "The equal node of the model on which TensorRT was run instead of this node."),
        field(nullptr, "as", &NodeSupport::same_name,
              "The name of the equal node on which TensorRT was run instead; empty if TensorRT was run on this node."),
        field_if_any("cost", &NodeSupport::cost,
                     "The work and the memory of the node; only in the report of an inspection."),
    };
  }
};

/// Returns whether a network with these nodes runs, or nothing if that is unknown.
[[nodiscard]] inline std::optional<bool> runs(const std::vector<NodeSupport>& nodes) {
  if (std::ranges::any_of(nodes, is_bad, &NodeSupport::support)) return false;
  return std::ranges::any_of(nodes, is_open, &NodeSupport::support) ? std::nullopt : std::optional(true);
}

/// Returns whether TensorRT builds the node and computes it wrongly. Returns false if TensorRT reports an error for the
/// node, because a refused node computes nothing.
[[nodiscard]] inline bool is_computed_wrongly(const NodeSupport& node) {
  return node.cause == computed_wrongly && node.tensorrt.empty();
}

/// Returns the middle of a sentence about `nodes` nodes that run on the host, `wrong` of them because TensorRT computes
/// them wrongly: "TensorRT does not run", "TensorRT computes wrongly" or "TensorRT does not run or computes wrongly".
[[nodiscard]] constexpr std::string_view problem_text(std::size_t nodes, std::size_t wrong) {
  if (wrong == 0) return "TensorRT does not run";
  return wrong == nodes ? "TensorRT computes wrongly" : "TensorRT does not run or computes wrongly";
}

/// Nodes that reports show together: nodes of one operator with a problem, or nodes without a problem that share a
/// reason.
struct NodeGroup {
  std::vector<std::size_t> nodes;

  static constexpr auto fields() {
    return std::tuple{field("nodes", &NodeGroup::nodes,
                            "Indices into the nodes of the report. The first of these nodes has the reason.")};
  }
};

/// Nodes of the inspected model that `convert` replaces together.
struct Fusion {
  std::vector<NodeRef> nodes;
  std::string pass;
  std::string replacement;
  std::string reason;
  std::string plugin;

  static constexpr auto fields() {
    return std::tuple{
        field("nodes", &Fusion::nodes, "The nodes of the inspected model, in its order; at least two."),
        field("rewrite_pass", "pass", &Fusion::pass, "The name of the pass that makes the last of the rewrites."),
        field("replacement", &Fusion::replacement,
              "The nodes that replace them, for example 'InstanceNorm<epsilon=1e-05>'."),
        field("reason", &Fusion::reason, "Why the rewrite is valid."),
        field("plugin", &Fusion::plugin,
              "Why a plugin computes the replacement; empty if TensorRT's own layers compute it.")};
  }
};

/// The maximum number of FailingPart files that an inspection writes.
inline constexpr std::size_t most_reduced = 20;

/// The smallest part of the model that reproduces a failure, written to a file of its own.
struct FailingPart {
  std::filesystem::path file;
  std::vector<NodeRef> nodes;
  std::size_t node_count = 0;
  std::optional<NodeRef> inside = {};
  std::vector<NodeRef> alike = {};
  Support support = Support::refused;
  std::vector<std::string> shapes;

  /// Returns the failing node. `nodes` must not be empty, as in every report.
  [[nodiscard]] const NodeRef& failing_node() const { return inside ? *inside : nodes.front(); }
  /// Returns the node of the main graph that contains the failing node, or nothing if that node is in the main graph.
  [[nodiscard]] std::optional<NodeRef> outer_node() const {
    return inside ? std::optional(nodes.front()) : std::nullopt;
  }

  static constexpr auto fields() {
    return std::tuple{
        field("file", &FailingPart::file, "The ONNX file of the part."),
        field("nodes", nullptr, &FailingPart::nodes, "The nodes of the main graph that fail together."),
        field("node_count", "nodes", &FailingPart::node_count, "The number of nodes in the file."),
        field(nullptr, "node", &FailingPart::failing_node, "The node that fails, or the first of several."),
        field("inside", nullptr, &FailingPart::inside,
              "The failing node in a branch, a loop body or a function of `nodes`."),
        field(nullptr, "inside", &FailingPart::outer_node,
              "The node of the main graph that contains the failing node."),
        field("alike", &FailingPart::alike, "Nodes that fail in the same way, on which TensorRT was not run."),
        field("support", "verdict", &FailingPart::support, "How the part fails."),
        field("shapes", &FailingPart::shapes, "The ranges of the part's inputs, as NAME=MIN..OPT..MAX."),
    };
  }
};

/// The part that reproduces the worst failure, and the parts that reproduce the other failures.
struct FailingParts {
  FailingPart worst;
  std::vector<FailingPart> others;

  static constexpr auto fields() {
    return std::tuple{inlined(&FailingParts::worst),
                      field("others", &FailingParts::others, "The smallest parts of the other failures.")};
  }
};

/// The progress of one trial: a parse or a build by TensorRT.
struct TrialProgress {
  /// The current action: "parse" or "build", and "load TensorRT" before the first trial. The string is valid only
  /// during the call, as is `outcome`.
  std::string_view action;
  /// The number of the trial among the trials with this action, starting at 1; 0 while TensorRT is loaded.
  std::size_t number = 0;
  std::size_t nodes = 0;  ///< The number of nodes in the model of the trial.
  /// The estimated share of the work that is done, from 0 to 1. It is an estimate because the total number of trials is
  /// not known in advance.
  double fraction = 0;
  std::string_view outcome;  ///< The driver's name for the outcome; empty until the trial has ended.
  double seconds = 0;
};

/// The counts of parses and builds, and the time they took.
struct TrialCounts {
  std::size_t parses = 0;
  std::size_t builds = 0;
  std::size_t processes = 1;
  double seconds = 0;

  void add(const TrialCounts& others) {
    parses += others.parses;
    builds += others.builds;
    processes += others.processes;
    seconds += others.seconds;
  }

  static constexpr auto fields() {
    return std::tuple{
        field("parses", &TrialCounts::parses, "The number of parses."),
        field("builds", &TrialCounts::builds, "The number of builds."),
        field("processes", &TrialCounts::processes, "The number of processes; each crash needs a new one."),
        field("seconds", &TrialCounts::seconds, "The time of all parses and builds.")};
  }
};

/// A summary of the runs of TensorRT.
struct ProbeSummary {
  Judge judge = Judge::rule;
  TensorRTIdentity tensorrt = {};
  TrialCounts trials = {};
  std::size_t unanswered = 0;
  std::size_t pieces = 0;
  bool built = false;
  std::string not_built = {};
  std::vector<std::string> shapes = {};
  std::vector<std::string> failing_shapes = {};
  bool of_converted = false;
  std::vector<FailingPart> reduced = {};
  std::vector<NodeRef> not_reduced = {};

  /// Returns whether TensorRT was run, which is false only for a default-constructed summary.
  [[nodiscard]] bool is_run() const { return judge != Judge::rule; }
  [[nodiscard]] std::string title() const { return tensorrt.title(); }
  [[nodiscard]] std::size_t parses() const { return trials.parses; }
  [[nodiscard]] std::size_t builds() const { return trials.builds; }
  [[nodiscard]] double seconds() const { return trials.seconds; }

  static constexpr auto fields() {
    return std::tuple{
        field("judge", "truth", &ProbeSummary::judge, "How far TensorRT went: 'parser' or 'builder'."),
        field(nullptr, "tensorrt", &ProbeSummary::run_tensorrt, "The TensorRT that was run, or null."),
        field("tensorrt", nullptr, &ProbeSummary::title, "The TensorRT that was run: 'TensorRT-RTX 1.7.1.116'."),
        field(nullptr, "trials", &ProbeSummary::run_trials, "The parses and builds, or null."),
        field("parses", nullptr, &ProbeSummary::parses, "The number of parses."),
        field("builds", nullptr, &ProbeSummary::builds, "The number of builds."),
        field("seconds", nullptr, &ProbeSummary::seconds, "The time of all parses and builds."),
        field("unanswered", &ProbeSummary::unanswered,
              "The number of nodes without a verdict when the budget was spent."),
        field("pieces", &ProbeSummary::pieces,
              "The number of parts in which the builder built all accepted nodes; 1 if it built them together."),
        field("built", &ProbeSummary::built, "Whether the whole model was built as one engine."),
        field("not_built", nullptr, &ProbeSummary::not_built,
              "Why the model was not built although no node was found to fail; may be empty."),
        field("shapes", &ProbeSummary::shapes, "The ranges for which the model was built, as NAME=MIN..OPT..MAX."),
        field("failing_shapes", &ProbeSummary::failing_shapes,
              "Sets of ranges for which the model did not build, each as 'NAME=MIN..OPT..MAX, NAME=MIN..OPT..MAX'."),
        field(nullptr, "reduced", &ProbeSummary::failing_parts,
              "The smallest part of the worst failure; null where no part was written."),
        field("of_converted", nullptr, &ProbeSummary::of_converted,
              "Whether the converted model was built, because TensorRT does not run the given model."),
        field("reduced", nullptr, &ProbeSummary::reduced, "The smallest part of each failure, the worst first."),
        field("not_reduced", nullptr, &ProbeSummary::not_reduced,
              "The failing nodes of further failures, whose parts were not written."),
    };
  }

 private:
  [[nodiscard]] std::optional<TensorRTIdentity> run_tensorrt() const {
    return is_run() ? std::optional(tensorrt) : std::nullopt;
  }
  [[nodiscard]] std::optional<TrialCounts> run_trials() const {
    return is_run() ? std::optional(trials) : std::nullopt;
  }
  [[nodiscard]] std::optional<FailingParts> failing_parts() const {
    if (reduced.empty()) return std::nullopt;
    return FailingParts{.worst = reduced.front(), .others = {reduced.begin() + 1, reduced.end()}};
  }
};

/// The next step from an inspected network to an engine, as `graft inspect` suggests it.
struct NextStep {
  enum class Kind : std::uint8_t {
    correct,  ///< Nodes have faults: correct them in the program that wrote the model.
    convert,  ///< `graft convert` rewrites nodes as native layers and operators of Graft.
    guard,    ///< `graft convert` rewrites nodes that the release computes wrongly.
    cut,      ///< `graft convert --cut` leaves nodes to the host that neither TensorRT nor Graft computes.
    write,    ///< No loaded library has the operator of nodes: `graft new` starts an operator of the user's own.
    probe,    ///< The rules give no verdict on some nodes: probe TensorRT.
    fuse,     ///< The network is ready for `graft build`, and `graft convert` fuses nodes to an operator of Graft.
    build,    ///< The network is ready for `graft build`.
  };
  Kind kind = Kind::build;
  std::size_t nodes = 0;  ///< Number of nodes that need the step; for `build`, the number of all nodes.
  std::size_t wrong = 0;  ///< For `cut`: the number of nodes that TensorRT builds but computes wrongly.
  std::size_t first = 0;  ///< For `write`: the index of its first node among the nodes of the report.
  friend bool operator==(const NextStep&, const NextStep&) = default;
};

/// A command that a user may run next.
struct NextCommand {
  std::string command;
  std::string why;

  static constexpr auto fields() {
    return std::tuple{field("command", &NextCommand::command, "The command; empty if no command helps."),
                      field("why", &NextCommand::why, "The reason for the command, or what to do.")};
  }
};

/// The user's settings for running TensorRT. The next commands repeat them.
struct TrialSettings {
  std::vector<std::string> shapes = {};  ///< Shapes of dynamic inputs, each as NAME=MIN..OPT..MAX or NAME=SHAPE.
  std::vector<std::string> targets = {};
  std::vector<std::filesystem::path> plugin_libraries = {};
  std::string tensorrt = "auto";
  bool plugin_override = false;
};

/// How each node of a model runs in TensorRT.
struct InspectReport {
  toolkit::Model model = {};
  std::filesystem::path file = {};
  toolkit::ImportOptions import = {};  ///< The options with which the file was read, without the watch.
  Origin origin = {};
  bool is_converted = false;
  std::string release = {};  ///< The name of the release whose rules were requested, or empty.
  /// The release whose rules gave the verdicts: `release` or, if it is empty, the newest release that was measured.
  TensorRTIdentity rules = {};
  std::int64_t opset = 0;
  std::uint64_t weight_bytes = 0;
  std::vector<ModelPort> inputs = {};
  std::vector<ModelPort> outputs = {};
  NodeCounts node_counts = {};  ///< The nodes of `model`.
  /// The node counts of the converted model, if `convert` rewrites anything.
  std::optional<NodeCounts> converted_node_counts = {};
  NetworkCost cost = {};             ///< The work and the weights of `model`.
  std::vector<Fusion> fusions = {};  ///< The groups of nodes that `convert` replaces together.
  std::vector<NodeSupport> nodes = {};
  std::vector<NodeGroup> problems = {};
  std::vector<NodeGroup> others = {};
  std::vector<NodeGroup> plain = {};
  std::vector<std::string> warnings = {};
  std::optional<ProbeSummary> probe = {};
  std::string not_asked = {};
  /// Whether some nodes fail and the network can be cut so that the half for TensorRT still contains arithmetic.
  bool can_be_cut = false;
  std::vector<NextStep> next_steps = {};  ///< The steps to an engine, in the order in which they are to be run.
  TrialSettings trials = {};              ///< The settings of the inspection that the next commands repeat.
  /// Whether ONNX Runtime is expected to have the operators of all nodes of `model`.
  bool may_run_in_onnxruntime = false;
  /// The GPUs for which the plugin library has code, out of those that a build without a target compiles for; empty if
  /// the library has code for all of them.
  std::vector<std::string> targets_of_plugins = {};
  /// The targets of `trials` for which the plugin library has no code, if nodes run as Graft's plugins.
  std::vector<std::string> targets_without_plugins = {};
  /// NAME=MIN..OPT..MAX for each input that is dynamic in the file and has fixed sizes in ImportOptions::shapes.
  std::vector<std::string> ranges_of_given_shapes = {};
  /// Whether the file cannot be built for ImportOptions::shapes without a conversion: it fixes other sizes for an
  /// input, or declares none.
  bool given_shapes_need_conversion = false;

  /// Returns whether TensorRT was not run, so that rules gave all verdicts.
  [[nodiscard]] bool is_judged_by_rules() const { return !probe; }
  /// Returns the title of the requested release, such as "TensorRT 10.13"; empty if no release was requested.
  [[nodiscard]] std::string release_title() const { return release.empty() ? "" : rules.title(); }
  /// Returns whether TensorRT built the given model without a conversion.
  [[nodiscard]] bool is_built_as_it_is() const { return probe && probe->built && !probe->of_converted; }
  /// Returns whether TensorRT runs the model, or nothing if that is not known.
  [[nodiscard]] std::optional<bool> runs() const {
    const std::optional<bool> by_nodes = report::runs(nodes);
    const bool is_unknown = by_nodes.value_or(false) && probe && !probe->not_built.empty();
    return is_unknown ? std::nullopt : by_nodes;
  }
  /// Returns the number of nodes for each verdict that occurs.
  [[nodiscard]] std::map<std::string, std::size_t, std::less<>> counts() const {
    std::map<std::string, std::size_t, std::less<>> counts;
    for (const NodeSupport& node : nodes) ++counts[to_string(node.support)];
    return counts;
  }

  static constexpr Schema schema{"graft.inspect", 2, "How each node will run in TensorRT, and why.", true};
  static constexpr auto fields() {
    return std::tuple{
        field("model", nullptr, &InspectReport::model,
              "The model that was inspected: the converted one with convert=True."),
        field(nullptr, "model", &InspectReport::file, "The file of the model."),
        field(nullptr, "converted", &InspectReport::is_converted,
              "Whether the result of `graft convert` was inspected."),
        field(nullptr, "release", &InspectReport::named_release,
              "The release whose rules were requested; null for the newest measured release."),
        field(nullptr, "opset", &InspectReport::opset, "The opset version of the model."),
        field("weight_bytes", &InspectReport::weight_bytes,
              "The bytes of the initializers and Constant nodes of the model, including those in the bodies of nodes."),
        field("nodes", nullptr, &InspectReport::nodes, "All nodes, including those of subgraphs."),
        field(nullptr, "node_count", &InspectReport::count_of_nodes,
              "The number of nodes of the graph and of the bodies of its nodes, such as Loop and If, without Constant "
              "nodes."),
        field("cost", &InspectReport::cost, "The work and the weights of the network."),
        field("fusions", &InspectReport::fusions,
              "The groups of nodes that `graft convert` replaces together; empty for a converted model."),
        field("runs", &InspectReport::runs, "Whether TensorRT runs the model; None if this is unknown."),
        field("counts", nullptr, &InspectReport::counts, "The number of nodes with each support."),
        field("problems", nullptr, &InspectReport::problems,
              "Groups of nodes that do not run, may not run, or run as a plugin that gets wrong values; the worst "
              "verdict first, then the largest group."),
        field("others", nullptr, &InspectReport::others,
              "Groups of nodes that run and have a reason; the largest first."),
        field("plain", nullptr, &InspectReport::plain, "Groups of nodes that run and have no reason."),
        inlined_in_json(&InspectReport::probe_or_none),
        composed<std::string>("answered_by", "Who judged the model, in words, and what was not tried."),
        field(nullptr, "inputs", &InspectReport::inputs, "The inputs of the model."),
        field(nullptr, "outputs", &InspectReport::outputs, "The outputs of the model."),
        field(nullptr, "origin", &InspectReport::imported_from,
              "The network in its original format; null for an ONNX model."),
        field(nullptr, "notes", &InspectReport::notes, "Remarks of the reader on the files."),
        composed<std::map<std::string, std::size_t, std::less<>>>("counts", "The number of nodes with each verdict."),
        field("warnings", &InspectReport::warnings, "Faults of the file, and assumptions of the conversion."),
        field("probe", nullptr, &InspectReport::probe, "The runs of TensorRT; None where it was not run."),
        field("not_asked", nullptr, &InspectReport::not_asked,
              "Why TensorRT was not run, so that the rules judged; empty where it was run."),
        composed<std::vector<NextCommand>>("next", "The commands that a user may run next."),
        field(nullptr, "nodes", &InspectReport::nodes, "All nodes, including those of subgraphs.")};
  }

 private:
  [[nodiscard]] std::size_t count_of_nodes() const { return node_counts.nodes; }
  [[nodiscard]] std::optional<std::string> named_release() const {
    return release.empty() ? std::nullopt : std::optional(release);
  }
  [[nodiscard]] const ProbeSummary& probe_or_none() const {
    static const ProbeSummary none;
    return probe ? *probe : none;
  }
  [[nodiscard]] std::optional<Origin> imported_from() const { return origin.if_imported(); }
  [[nodiscard]] const std::vector<std::string>& notes() const { return origin.notes; }
};

}  // namespace graft::report
