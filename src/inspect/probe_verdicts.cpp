// Prepares the model as `graft build` does, probes TensorRT, and corrects the verdict on each node.
#include "inspect/probe_verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "engine/plugin_library.hpp"
#include "graft/engine_error.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "graft/setting.hpp"
#include "inspect/different_tensors.hpp"
#include "inspect/model_parts.hpp"
#include "inspect/tensorrt_support.hpp"
#include "onnx/faults.hpp"
#include "onnx/functions.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_name.hpp"
#include "onnx/operator_node.hpp"
#include "operator_library/load.hpp"

namespace graft::inspect {
namespace {

using nlohmann::json;

bool has_own_operators(const onnx::Model& model) {
  bool found = false;
  model.graph().for_each_node([&](const onnx::Node& node) { found = found || find_operator_for(node); });
  return found;
}

/// Returns whether the operator type of any node equals, or differs by a typing error from, an operator of Graft or a
/// plugin that Graft replaces.
bool has_own_names(const onnx::Model& model) {
  bool found = false;
  model.graph().for_each_node([&](const onnx::Node& node) { found = found || nearest_own_operator(node.op_type); });
  return found;
}

/// Returns the plugin libraries to load: `named`; the loaded operator libraries that have plugins; Graft's own library
/// if it exists and the model may need it; and libgraft_stand_ins.so if it exists and a node has, or nearly has, the
/// name of an operator of Graft or of a plugin in that library.
std::vector<std::string> libraries_for(const onnx::Model& model, const std::vector<std::string>& named) {
  std::vector<std::string> libraries = named;
  const engine::PluginLibrary own = engine::own_plugin_library();
  for (const OperatorLibrary& library : operator_libraries()) {
    // without plugins, TensorRT builds the operators' functions
    if (has_plugins(library)) libraries.push_back(library.file);
  }
  const bool with_names = has_own_names(model);
  if (own.exists && !engine::has_own_plugin_library(named) &&
      (has_own_operators(model) || has_onnx_operators(model) || with_names)) {
    libraries.push_back(own.path.string());
  }
  const engine::PluginLibrary stand_ins = engine::own_stand_ins();
  if (with_names && stand_ins.exists && std::find(named.begin(), named.end(), stand_ins.path.string()) == named.end()) {
    libraries.push_back(stand_ins.path.string());
  }
  return libraries;
}

/// Renames nodes so that every name is unique, because TensorRT's messages refer to nodes by name.
void name_all_nodes(onnx::Model& model) {
  std::set<std::string, std::less<>> taken;
  model.graph().for_each_node([&](onnx::Node& node) {
    const onnx::Value* output = node.output(0);
    std::string name = !node.name.empty() ? node.name : output != nullptr ? output->name : node.op_type;
    for (int number = 1; !taken.insert(name).second; ++number) {
      name = fmt::format("{}_{}", node.name.empty() ? node.op_type : node.name, number);
    }
    node.name = name;
  });
}

/// Returns whether a plugin exists for an operator. A library of operators that was built without CUDA has no plugins;
/// TensorRT then builds the functions of its operators.
bool has_plugin(const OperatorType& type) {
  const OperatorLibrary* library = library_of(type);
  return library == nullptr || has_plugins(*library);
}

/// Returns the copy of the model that is sent to TensorRT: with unique node names and, if `with_plugins`, without the
/// functions of operators that have a plugin.
onnx::Model model_to_ask(const onnx::Model& model, bool with_plugins) {
  onnx::Model asked = model.clone();
  if (with_plugins) {
    detach_functions(asked, has_plugin);
    infer_around_faults(asked, [](const onnx::Node&, const Error&) {});
  }
  name_all_nodes(asked);
  return asked;
}

std::string names_of(const std::vector<const onnx::Node*>& nodes) {
  std::vector<std::string> names;
  for (const onnx::Node* node : nodes) names.push_back(node->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string sentence(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? first + second : first + "; " + second;
}

/// Returns the advice on a node that TensorRT does not accept, if there is no more specific advice. `words` are
/// TensorRT's messages.
std::string general_advice(const onnx::Node& node, Outcome outcome, const std::string& words) {
  if (words.find("CUDA driver version is insufficient") != std::string::npos) {
    return "TensorRT calls CUDA when it creates the layer of this node: run the command on a machine with a GPU";
  }
  if (const auto hint = hint_on_refusal(node)) return hint->advice;
  if (fails_by_rule(node)) return advice_on_refusal(node);
  if (outcome == Outcome::refused) return advice_to_convert();  // note_obstacles() replaces it
  return fmt::format(
      "{} FILE writes the smallest model that fails, for a bug report or to test other releases of TensorRT",
      setting_name(Setting::reduce));
}

/// Returns whether `layer` is the name of the layer that TensorRT created for `node`: the node's name, or "node_of_"
/// and the name of its first output, possibly with _0, _1 ... appended.
bool is_layer_of(const std::string& layer, const onnx::Node& node) {
  std::string_view rest = layer;
  if (!node.name.empty()) {
    if (!rest.starts_with(node.name)) return false;
    rest.remove_prefix(node.name.size());
  } else {  // a node of a function body has no name
    const std::string name = "node_of_" + (node.output() == nullptr ? std::string() : node.output()->name);
    if (!rest.starts_with(name)) return false;
    rest.remove_prefix(name.size());
  }
  return rest.empty() || (rest.front() == '_' && rest.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

/// Returns the driver's data on the plugin layer that TensorRT created for a node or for a node in its function, or
/// null if TensorRT created no plugin layer for it.
const json* plugin_layer(const onnx::Model& model, const ProbeReport& report, const onnx::Node& node) {
  const auto of = [&](const onnx::Node& maker) -> const json* {
    for (const auto& [layer, plugin] : report.plugins) {
      if (plugin.value("name", "") == maker.op_type && is_layer_of(layer, maker)) return &plugin;
    }
    return nullptr;
  };
  const json* found = of(node);
  if (found != nullptr || model.find_function(node) == nullptr) return found;
  static_cast<void>(find_inside(model, node, [&](const onnx::Node& inner) {
    found = of(inner);
    return found != nullptr;
  }));
  return found;
}

const json* creator_of_layer(const json& layer, const json& creators) {
  const auto creator = std::find_if(creators.begin(), creators.end(), [&](const json& c) {
    return c.value("name", "") == layer.value("name", "") && c.value("version", "") == layer.value("version", "") &&
           c.value("namespace", "") == layer.value("namespace", "");
  });
  return creator == creators.end() ? nullptr : &*creator;
}

std::string describe_layer(const json& layer, const json& creators) {
  const json* creator = creator_of_layer(layer, creators);
  return creator == nullptr ? fmt::format("{} {}", layer.value("name", ""), layer.value("version", ""))
                            : describe_creator(*creator);
}

/// A node, and the node of the main graph that contains it. Both are the same for a node of the main graph.
struct Placed {
  const onnx::Node* node = nullptr;
  const onnx::Node* outer = nullptr;
};

/// The results of probing TensorRT with a model, and the nodes and verdicts to which they belong.
struct Answers {
  const onnx::Model& asked;
  const std::vector<Placed>& placed;  ///< The nodes with a verdict, in the order of the verdicts.
  Judge level;
  const ProbeReport& report;
  const json& creators;
  const std::map<const onnx::Node*, const NodeSupport*>& verdicts;
  std::string tensorrt;  ///< The title of the TensorRT that was run.

  /// Returns a description of a node as it is in the user's model. In the probed model, ONNX operators may have been
  /// replaced by plugins.
  [[nodiscard]] std::string describe(const onnx::Node& node) const {
    const auto verdict = verdicts.find(&node);
    return verdict == verdicts.end() ? onnx::describe(node) : onnx::describe(verdict->second->node);
  }
};

/// Returns a clause such as ", as it does for the similar node 'top_1' (TopK)" if another node was probed in place of
/// this one; otherwise an empty string.
std::string alike_text(const Finding& finding) {
  return finding.as == nullptr ? "" : fmt::format(", as it does for the similar {}", onnx::describe(*finding.as));
}

void apply(const Finding& finding, const onnx::Node& node, const Answers& answers, NodeSupport& verdict) {
  const json* layer = finding.outcome == Outcome::refused ? nullptr : plugin_layer(answers.asked, answers.report, node);
  std::string rule = verdict.support == Support::plugin || verdict.support == Support::unknown ? "" : verdict.reason;
  if (layer != nullptr) rule = verdict.plugin = describe_layer(*layer, answers.creators);
  verdict.judge = finding.outcome == Outcome::refused ? Judge::parser : answers.level;
  verdict.tensorrt = finding.words;
  if (finding.as != nullptr) verdict.same_as = ref_of(*finding.as);
  verdict.reason =
      fmt::format("{}{}: {}", what_happened(verdict_of(finding.outcome)), alike_text(finding), finding.words);
  if (finding.nodes.size() > 1) {
    verdict.reason = fmt::format("{} (these nodes fail together: {})", verdict.reason, names_of(finding.nodes));
  }
  if (finding.cause) {
    verdict.cause = finding.cause->cause;
    verdict.reason = finding.cause->reason + "; " + verdict.reason;
    if (verdict.support != Support::lowered) verdict.advice = finding.cause->advice;
  }
  const onnx::Node& refused = finding.inside == nullptr ? node : *finding.inside;
  if (const auto hint = hint_on_refusal(refused)) verdict.reason = hint->reason + "; " + verdict.reason;
  if (finding.inside != nullptr && finding.inside != &node) {
    verdict.reason = fmt::format("inside it, {}: {}", answers.describe(*finding.inside), verdict.reason);
  }
  const bool has_fault = refused.metadata.contains(onnx::fault_note);
  if (!finding.cause || has_fault) verdict.reason = sentence(rule, verdict.reason);
  if (const auto supposed = answers.report.supposed.find(&node); supposed != answers.report.supposed.end()) {
    verdict.reason = sentence(verdict.reason, fmt::format("judged under the assumption that {}", supposed->second));
  }
  if (verdict.support == Support::lowered) return;
  const bool rule_knows = verdict.support == Support::unsupported && layer == nullptr && !verdict.advice.empty();
  if (!rule_knows && !finding.cause) {
    verdict.advice = has_fault ? advice_on_fault : general_advice(refused, finding.outcome, finding.words);
  }
  verdict.support = verdict_of(finding.outcome);
}

/// Changes the verdict on a node that could not be probed to Support::not_asked, with the reason `why`.
/// `is_over_budget` states whether the time or the number of builds did not suffice to probe it. The verdict stays if
/// rules found that the node is lowered, or that nothing, including the loaded plugins, runs it.
void leave_out(const onnx::Node& node, const std::string& why, bool is_over_budget, const Answers& answers,
               NodeSupport& verdict) {
  const std::string reason = "TensorRT gave no verdict on the node: " + why;
  const bool may_be_plugin = !onnx::is_standard_operator(node.domain, node.op_type) &&
                             !node.metadata.contains(onnx::fault_note) && !answers.asked.find_function(node);
  if (verdict.support == Support::unsupported && may_be_plugin) {
    if (const auto cause = failed_look_up(node, answers.creators)) {
      verdict.cause = cause->cause;
      verdict.reason = sentence(cause->reason, reason);
      verdict.advice = cause->advice;
      return;
    }
    verdict.plugin = describe_creator(*creator_of(node, answers.creators));
    verdict.reason = verdict.plugin;
    verdict.support = Support::plugin;
    verdict.cause.clear();
  }
  verdict.reason = sentence(verdict.reason, reason);
  const bool is_good = verdict.support == Support::native || verdict.support == Support::plugin;
  if (!is_good && verdict.support != Support::unknown) return;
  verdict.support = Support::not_asked;
  verdict.advice = is_over_budget
                       ? fmt::format("fix the nodes that do not run, or raise {} and {}, and run the command again",
                                     setting_name(Setting::max_builds), setting_name(Setting::max_seconds))
                   : answers.report.findings.empty()
                       ? fmt::format("set other sizes with {} NAME=MIN..OPT..MAX", setting_name(Setting::shape_ranges))
                       : "fix the node that does not run, and run the command again";
}

/// Changes the cause, reason and advice of a verdict if TensorRT takes a node of a custom domain for the ONNX operator
/// of the same name.
void warn_of_name(const onnx::Node& node, const Answers& answers, NodeSupport& verdict) {
  if (answers.asked.find_function(node) != nullptr) return;
  const auto taken = taken_for_onnx(node, answers.creators);
  if (!taken) return;
  verdict.cause = taken->cause;
  verdict.reason = taken->reason;
  verdict.advice = taken->advice;
}

/// Changes the verdict on a node that TensorRT accepts to native or to the plugin that runs it. The verdict on an
/// invalid node stays, because ONNX does not define what such a node computes.
void accept(const onnx::Node& node, const Answers& answers, NodeSupport& verdict) {
  verdict.judge = answers.level;
  if (verdict.cause == report::library_missing) verdict.cause.clear();
  const json* layer = plugin_layer(answers.asked, answers.report, node);
  if (layer == nullptr && is_bad(verdict.support) && verdict.advice == advice_on_fault) {
    const bool is_parsed = answers.level == Judge::parser;
    verdict.reason = fmt::format("{}; TensorRT {} it nevertheless", verdict.reason, is_parsed ? "parses" : "builds");
    return;
  }
  if (layer == nullptr) {
    const bool is_lowered =
        verdict.support == Support::lowered && onnx::is_standard_operator(node.domain, node.op_type);
    const bool is_left_to_builder =
        is_lowered || verdict.support == Support::unsupported || verdict.support == Support::unknown;
    if (is_left_to_builder && answers.level == Judge::parser) {
      verdict.judge = Judge::rule;
      warn_of_name(node, answers, verdict);
      verdict.reason =
          sentence(verdict.reason, fmt::format("TensorRT's parser accepts the node; {} tests whether the node builds",
                                               setting_name(Setting::judge_builder)));
      return;
    }
    const bool is_refused = is_lowered || verdict.support == Support::unsupported;
    if (is_refused && verdict.cause == computed_wrongly) {
      verdict.reason = fmt::format("TensorRT builds it, but computes wrong values: {}", verdict.reason);
      return;
    }
    if (is_refused) {
      verdict.reason =
          fmt::format("{} builds this node, although Graft's rule says: {}", answers.tensorrt, verdict.reason);
    } else if (verdict.support == Support::unknown) {
      verdict.reason.clear();
    } else if (verdict.support == Support::plugin) {
      verdict.reason = "TensorRT runs it with native layers, from its ONNX function";
    }
    if (verdict.support != Support::native) verdict.advice.clear();
    verdict.support = Support::native;
    warn_of_name(node, answers, verdict);
    return;
  }
  const bool is_known = verdict.support == Support::plugin || verdict.support == Support::lowered ||
                        node.metadata.contains(onnx::fault_note);
  const bool is_in_function = layer->value("name", "") != node.op_type;
  verdict.plugin = describe_layer(*layer, answers.creators);
  verdict.reason = sentence(is_in_function ? "inside its function: " + verdict.plugin : verdict.plugin,
                            is_known ? verdict.reason : "");
  verdict.support = Support::plugin;
  const json* creator = creator_of_layer(*layer, answers.creators);
  if (is_in_function || creator == nullptr || creator->value("library", "").empty()) return;
  if (const auto wrong = wrong_fields(node, *creator)) {
    verdict.cause = wrong->cause;
    verdict.reason = wrong->reason + "; " + verdict.reason;
    verdict.advice = wrong->advice;
  }
}

/// Returns the finding that decides the verdict on `node`, or null if no finding applies. `outer` is the node of the
/// main graph that contains `node` or is `node` itself, and `of_outer` contains the findings on `outer`. If `node` is
/// `outer`, returns the worst of them. Otherwise returns a finding on `node`, on a node that contains it, or on a node
/// whose failure prevented probing `node`.
const Finding* finding_on(const onnx::Node& node, const std::vector<const Finding*>& of_outer,
                          const onnx::Node& outer) {
  if (&node == &outer) {
    return *std::max_element(of_outer.begin(), of_outer.end(), [](const Finding* a, const Finding* b) {
      return verdict_of(a->outcome) < verdict_of(b->outcome);
    });
  }
  for (const Finding* finding : of_outer) {
    if (finding->inside == &node) return finding;
    const std::vector<onnx::Graph*> inner = node.subgraphs();
    const bool holds_it = std::any_of(inner.begin(), inner.end(), [&](const onnx::Graph* graph) {
      bool found = false;
      graph->for_each_node([&](const onnx::Node& each) { found = found || &each == finding->inside; });
      return found;
    });
    if (holds_it) return finding;
  }
  return nullptr;
}

/// Returns the nodes of the main graph and of sub-graphs in the order of Graph::for_each_node().
std::vector<Placed> placed_nodes(const onnx::Model& model) {
  std::map<const onnx::Node*, const onnx::Node*> outer;
  for (const onnx::Node* node : model.graph().nodes()) {
    outer[node] = node;
    for (const onnx::Graph* inner : node->subgraphs()) {
      inner->for_each_node([&, node](const onnx::Node& inside) { outer[&inside] = node; });
    }
  }
  std::vector<Placed> ordered;
  model.graph().for_each_node([&](const onnx::Node& node) { ordered.push_back({&node, outer.at(&node)}); });
  return ordered;
}

/// Appends to the verdict's reason the names of the other failing nodes inside this node. `told` is the finding that
/// the reason describes already.
void count_others(const std::vector<const Finding*>& findings, const Finding* told, NodeSupport& verdict) {
  if (findings.size() < 2) return;
  std::vector<std::string> names;
  for (const Finding* finding : findings) {
    if (finding != told && finding->inside != nullptr) names.push_back(finding->inside->name);
  }
  if (!names.empty()) verdict.reason += fmt::format("; other nodes inside it do not run: {}", fmt::join(names, ", "));
}

/// Returns a clause on the first output of the node whose shape or type in TensorRT differs from ONNX's, or an empty
/// string.
std::string difference_in(const onnx::Node& node, const ProbeReport& report) {
  for (const onnx::Value* output : node.outputs) {
    const auto found = output == nullptr ? report.different.end() : report.different.find(output->name);
    if (found != report.different.end()) return found->second;
  }
  return {};
}

void correct(const Answers& answers, std::vector<NodeSupport>& nodes) {
  std::map<const onnx::Node*, std::vector<const Finding*>> found;
  for (const Finding& finding : answers.report.findings) {
    for (const onnx::Node* node : finding.nodes) found[node].push_back(&finding);
  }
  for (std::size_t i = 0; i < nodes.size() && i < answers.placed.size(); ++i) {
    NodeSupport& verdict = nodes[i];
    const auto [node, outer] = answers.placed[i];
    if (const auto findings = found.find(outer); findings != found.end()) {
      if (const Finding* finding = finding_on(*node, findings->second, *outer)) {
        apply(*finding, *node, answers, verdict);
        // TensorRT blames a node inside for what the rule found in the node that holds it.
        const bool is_blamed_for_outer = node != outer && !finding->cause && !hint_on_refusal(*node) &&
                                         !fails_by_rule(*node) && fails_by_rule(*outer);
        if (is_blamed_for_outer) verdict.advice.clear();
        if (node == outer) count_others(findings->second, finding, verdict);
      } else if (answers.report.runs_inside.contains(node)) {
        accept(*node, answers, verdict);
      } else {
        leave_out(*node, fmt::format("it is inside '{}', which does not run", outer->name), false, answers, verdict);
      }
    } else if (const auto blocked = answers.report.not_asked.find(outer); blocked != answers.report.not_asked.end()) {
      leave_out(*node, blocked->second, answers.report.over_budget.contains(outer), answers, verdict);
    } else {
      const NodeSupport by_rule = verdict;
      accept(*node, answers, verdict);
      if (const auto supposed = answers.report.supposed.find(outer); supposed != answers.report.supposed.end()) {
        verdict.reason = sentence(verdict.reason, fmt::format("judged under the assumption that {}", supposed->second));
      }
      if (by_rule.advice == advice_on_fault) continue;  // ONNX defines no tensor for it
      const std::string difference = node == outer ? difference_in(*node, answers.report) : "";
      if (difference.empty()) continue;
      const bool is_lowered = by_rule.support == Support::lowered;
      if (is_lowered) verdict.advice = by_rule.advice;
      note_different_tensor(fmt::format("{} builds it, but {}", answers.tensorrt, difference), is_lowered, verdict);
    }
  }
}

/// A finding on a node that was probed, and the findings on similar nodes that were not probed themselves.
struct Failure {
  const Finding* finding = nullptr;
  std::vector<const Finding*> alike;
};

const onnx::Node& failing_node(const Finding& finding) {
  return finding.inside == nullptr ? *finding.nodes.front() : *finding.inside;
}

/// Returns the failures of a report, those with the worst verdict (verdict_of()) first. Findings on nodes that were not
/// probed themselves are added to the failure of the similar node that was probed.
std::vector<Failure> failures_of(const ProbeReport& report) {
  std::vector<Failure> failures;
  for (const Finding& finding : report.findings) {
    if (finding.as == nullptr) failures.push_back({&finding, {}});
  }
  for (const Finding& finding : report.findings) {
    const auto same = std::find_if(failures.begin(), failures.end(), [&](const Failure& failure) {
      return finding.as != nullptr && &failing_node(*failure.finding) == finding.as;
    });
    if (same != failures.end()) same->alike.push_back(&finding);
  }
  std::stable_sort(failures.begin(), failures.end(), [](const Failure& a, const Failure& b) {
    return verdict_of(a.finding->outcome) > verdict_of(b.finding->outcome);
  });
  return failures;
}

/// Returns the file name for the failing part number `number`, counted from 1: smallest.onnx, smallest.2.onnx,
/// smallest.3.onnx ...
std::string numbered(const std::string& file, std::size_t number) {
  if (number == 1) return file;
  const std::filesystem::path path(file);
  const std::string name = fmt::format("{}.{}{}", path.stem().string(), number, path.extension().string());
  return (path.parent_path() / name).string();
}

std::vector<NodeRef> refs_of(const std::vector<const onnx::Node*>& nodes) {
  std::vector<NodeRef> refs;
  for (const onnx::Node* node : nodes) refs.push_back(ref_of(*node));
  return refs;
}

FailingPart write_part(const TensorRTProbe& probe, const Failure& failure, const SizeRanges& ranges,
                       const std::string& file) {
  const Finding& finding = *failure.finding;
  const onnx::Model part = probe.smallest_part(finding);
  onnx::write_onnx(part, file);
  FailingPart written{.file = file,
                      .nodes = refs_of(finding.nodes),
                      .node_count = part.graph().node_count(),
                      .support = verdict_of(finding.outcome),
                      .shapes = finding.ranges.empty() ? ranges.of(part) : finding.ranges};
  if (finding.inside != nullptr) written.inside = ref_of(*finding.inside);
  for (const Finding* alike : failure.alike) written.alike.push_back(ref_of(failing_node(*alike)));
  return written;
}

/// Writes the smallest failing model of each failure, up to a maximum number, to `file` and numbered files next to it,
/// and lists them in `answer`.
void reduce(const TensorRTProbe& probe, const ProbeReport& report, const SizeRanges& ranges, const std::string& file,
            ProbeSummary& answer) {
  const std::vector<Failure> failures = failures_of(report);
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (i < report::most_reduced) {
      answer.reduced.push_back(write_part(probe, failures[i], ranges, numbered(file, i + 1)));
    } else {
      answer.not_reduced.push_back(ref_of(failing_node(*failures[i].finding)));
    }
  }
}
}  // namespace

Support verdict_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::accepted: return Support::native;
    case Outcome::refused: return Support::refused;
    case Outcome::failed: return Support::fails;
    case Outcome::hung: return Support::hangs;
    case Outcome::crashed: return Support::crashes;
  }
  return Support::native;
}

namespace {

/// Calls `start` and returns its result. If `start` finds no TensorRT that starts, and the options request an automatic
/// probe without naming a TensorRT, throws NoTensorRT in place of the Error. A plugin library that does not load is an
/// error in every case, because `graft build` would load it too.
template <class Start>
auto translate_missing_tensorrt(const ProbeOptions& options, Start&& start) {
  const bool may_be_missing = options.is_automatic && options.trials.tensorrt == "auto";
  try {
    return start();
  } catch (const EngineError& error) {
    if (!may_be_missing || error.failure().kind == "plugin_library") throw;
    throw NoTensorRT{error.what()};
  } catch (const Error& error) {
    if (!may_be_missing || error.kind() != Error::Kind::missing_tool) throw;
    throw NoTensorRT{error.what()};
  }
}

}  // namespace

std::unique_ptr<DriverTrials> start_tensorrt(const ProbeOptions& options, std::function<bool()> should_stop) {
  return translate_missing_tensorrt(
      options, [&] { return std::make_unique<DriverTrials>(options.trials, std::move(should_stop)); });
}

ProbeSummary probe_verdicts(const onnx::Model& model, const ProbeOptions& options, DriverTrials& trials,
                            const TrialCallbacks& callbacks, std::vector<NodeSupport>& nodes) {
  std::vector<std::string> libraries = options.trials.libraries;
  if (options.plugins) libraries = libraries_for(model, libraries);
  onnx::Model asked = model_to_ask(model, options.plugins && !libraries.empty() && has_own_operators(model));
  const std::vector<Placed> placed = placed_nodes(asked);
  translate_missing_tensorrt(options, [&] { trials.load(libraries, callbacks); });
  // As `graft build` does. Each Cast that this adds is probed too, and has no verdict.
  const bool has_plugins = options.plugins && engine::has_own_plugin_library(libraries);
  if (has_plugins && trials.tensorrt().flavor == "rtx" && adopt_onnx_operators(asked) > 0)
    detach_functions(asked, has_plugin);
  SizeRanges ranges(asked, options.shapes, options.is_automatic);
  TensorRTProbe probe(asked, trials, ranges);
  using Order = TensorRTProbe::Order;
  const Order order = !options.is_automatic ? Order::known_first
                      : options.searches    ? Order::whole_first
                                            : Order::whole_only;
  const ProbeReport report = probe.run(options.level, order);
  const Judge answered = report.not_built.empty() ? options.level : Judge::parser;
  std::map<const onnx::Node*, const NodeSupport*> verdicts;
  for (std::size_t i = 0; i < nodes.size() && i < placed.size(); ++i) verdicts.emplace(placed[i].node, &nodes[i]);
  correct({asked, placed, answered, report, trials.creators(), verdicts, trials.tensorrt().title()}, nodes);

  ProbeSummary answer{.judge = answered,
                      .tensorrt = trials.tensorrt(),
                      .unanswered = report.over_budget.size(),
                      .pieces = report.pieces,
                      .built = report.pieces == 1 && report.findings.empty() && report.not_asked.empty(),
                      .not_built = report.not_built,
                      .shapes = report.ranges,
                      .failing_shapes = report.failing_ranges};
  if (!options.reduce.empty()) reduce(probe, report, ranges, options.reduce, answer);
  answer.trials = trials.summary();
  return answer;
}

}  // namespace graft::inspect
