// `inspect`: judges nodes by rule, runs TensorRT on the model, and corrects the verdicts.
#include "toolkit/inspect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "core/verdict_groups.hpp"
#include "engine/driver.hpp"
#include "engine/engine_session.hpp"
#include "graft/setting.hpp"
#include "inspect/advice.hpp"
#include "inspect/f64_nodes.hpp"
#include "inspect/next_steps.hpp"
#include "inspect/type_trials.hpp"
#include "onnx/check_types.hpp"
#include "onnx/count_nodes.hpp"
#include "onnx/declared_shapes.hpp"
#include "onnx/faults.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/node_cost.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/operator_calls.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema_ports.hpp"
#include "onnx/shape_inference.hpp"
#include "onnx/standard_operators.hpp"
#include "toolkit/access.hpp"
#include "toolkit/checks.hpp"
#include "toolkit/cuda_architectures.hpp"
#include "toolkit/cut.hpp"
#include "toolkit/gpu_targets.hpp"
#include "toolkit/operator_from_node.hpp"
#include "toolkit/ports.hpp"
#include "toolkit/read.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {
namespace {

/// Explains a failure of the converted model by nodes of the original. Takes the first node of the converted model that
/// does not run or, if all may run, the first whose verdict is unknown. Copies its verdict to the lowered nodes of the
/// original whose name it has or, if there are no such nodes, to all lowered nodes.
void blame_lowered(const std::vector<report::NodeSupport>& converted, std::vector<report::NodeSupport>& nodes) {
  const auto bad = std::find_if(converted.begin(), converted.end(),
                                [](const report::NodeSupport& node) { return inspect::is_bad(node.support); });
  const auto open = std::find_if(converted.begin(), converted.end(),
                                 [](const report::NodeSupport& node) { return inspect::is_open(node.support); });
  if (bad == converted.end() && open == converted.end()) return;
  const report::NodeSupport& said = bad != converted.end() ? *bad : *open;
  const auto is_lowered = [](const report::NodeSupport& node) { return node.support == report::Support::lowered; };
  const auto is_named = [&](const report::NodeSupport& node) {
    return is_lowered(node) && !node.node.name.empty() && said.node.name.starts_with(node.node.name);
  };
  const bool any_named = std::any_of(nodes.begin(), nodes.end(), is_named);
  for (report::NodeSupport& node : nodes) {
    if (any_named ? !is_named(node) : !is_lowered(node)) continue;
    node.support = said.support;
    node.judge = said.judge;
    node.tensorrt = said.tensorrt;
    node.reason =
        fmt::format("{}; after `graft convert`, node '{}' ({}): {}", node.reason, said.node.name, said.op, said.reason);
    node.advice = said.advice;
  }
}

/// Sets the verdict `lowered` on the nodes that do not run, or may not run, of a model that runs after its conversion.
/// `why` is the reason for this conclusion.
void note_that_converted_runs(std::vector<report::NodeSupport>& nodes, std::string_view why) {
  for (report::NodeSupport& node : nodes) {
    if (!inspect::is_bad(node.support) && !inspect::is_open(node.support)) continue;
    if (node.cause == inspect::computed_wrongly) continue;  // a model with such a node builds
    if (node.advice == inspect::advice_on_fault) continue;  // a conversion refuses it
    node.support = report::Support::lowered;
    node.reason += fmt::format("{}{}", node.reason.empty() ? "" : "; ", why);
    node.advice = "graft convert";
  }
}

/// Corrects verdicts on the original model with the rules' verdicts on the converted model. If the original runs after
/// its lowered nodes are rewritten, but a rule predicts a problem in the converted model, lowered nodes get the verdict
/// on this problem (blame_lowered). If the original does not run, and no rule predicts a problem in the converted
/// model, the failing nodes become lowered.
void judge_converted(const onnx::Model& converted, const inspect::Release& release,
                     std::vector<report::NodeSupport>& nodes) {
  const bool any_lowered = std::any_of(nodes.begin(), nodes.end(), [](const report::NodeSupport& node) {
    return node.support == report::Support::lowered;
  });
  const bool do_run = inspect::runs(nodes).value_or(false);
  if (do_run && !any_lowered) return;
  const std::vector<report::NodeSupport> made = inspect::judge_nodes(converted, {}, release);
  if (do_run) {
    blame_lowered(made, nodes);
  } else if (inspect::runs(made).value_or(false)) {
    note_that_converted_runs(nodes, "no rule is against the result of `graft convert`");
  }
}

/// Sets the verdicts that the rules give on the nodes of `inspection.model`, which has the shapes of its file. If
/// `convert` is set, converts the model first, and the verdicts are on the nodes of the result. `shapes` replace the
/// shapes of inputs in the file.
void judge(const runtime::Engine& engine, Inspection& inspection, const InputShapes& shapes, bool convert) {
  graft::onnx::Model& model = inspection.model;
  report::InspectReport& report = inspection.report;
  report.is_converted = convert;
  report.targets_of_plugins = targets_of_plugins();
  report.warnings = file_warnings(model, report.origin);
  const inspect::Release release = inspection.release.value_or(inspect::newest_measured_release());
  if (convert) {
    inspection.nodes_to_define = find_nodes_to_define(inspect::inferred_copy(model));
    infer_shapes(model, shapes);
    inspect::convert_in_memory(engine, model, release);
  }
  inspect::infer_and_note_faults(model, convert ? InputShapes() : shapes);
  if (!convert) {
    inspection.nodes_to_define = find_nodes_to_define(model);
    inspection.prospect = inspect::prospect_of(engine, model, release);
    if (inspection.prospect.converted != nullptr) report.converted_node_counts = inspection.prospect.nodes;
    const std::vector<std::string>& warnings = inspection.prospect.warnings;
    report.warnings.insert(report.warnings.end(), warnings.begin(), warnings.end());
  }
  if (std::optional<std::string> warning = unknown_rank_warning(model)) report.warnings.push_back(std::move(*warning));
  if (std::optional<std::string> warning = inspect::f64_warning(model)) report.warnings.push_back(std::move(*warning));
  report.nodes = inspect::judge_nodes(model, inspection.prospect.forecast, release);
  if (inspection.prospect.converted != nullptr) {
    judge_converted(*inspection.prospect.converted, release, report.nodes);
  }
}

/// Sets `ranges_of_given_shapes` and `given_shapes_need_conversion` of the report for the shapes that the caller gave.
/// The model must have the shapes of its file.
void note_given_shapes(Inspection& inspection, const InputShapes& shapes) {
  for (const auto& [name, given] : shapes) {
    const onnx::Value* input = std::as_const(inspection.model).graph().find_local(name);
    if (input == nullptr || !input->is_input) continue;
    const bool fits = input->shape && input->shape->size() == given.size() &&
                      std::equal(given.begin(), given.end(), input->shape->begin(), [](const Dim& a, const Dim& b) {
                        return !b.is_constant() || (a.is_constant() && a.value() == b.value());
                      });
    if (!fits) {
      inspection.report.given_shapes_need_conversion = true;
      continue;
    }
    if (onnx::has_known_sizes(*input->shape) || !onnx::has_known_sizes(given)) continue;
    std::vector<std::int64_t> sizes;
    for (const Dim& dim : given) sizes.push_back(dim.value());
    const std::string text = fmt::format("{}", fmt::join(sizes, "x"));
    inspection.report.ranges_of_given_shapes.push_back(fmt::format("{0}={1}..{1}..{1}", name, text));
  }
}

/// Returns the text on a single line, with ". " in place of each newline.
std::string on_one_line(const std::string& text) {
  std::string line = text;
  for (std::size_t end = line.find('\n'); end != std::string::npos; end = line.find('\n', end)) {
    line.replace(end, 1, ". ");
  }
  return line;
}

/// Sets the verdict `unsupported` on the nodes whose inputs have types that ONNX does not allow, unless `accepts`
/// accepts them. Throws Error for a model without outputs.
void note_type_faults(Inspection& inspection, const onnx::AcceptsTypes& accepts = nullptr) {
  if (inspection.has_checked_types) return;
  onnx::check_has_outputs(inspection.model);
  std::vector<onnx::Node*> nodes;
  inspection.model.graph().for_each_node([&](onnx::Node& node) { nodes.push_back(&node); });
  for (const onnx::TypeFault& fault : onnx::find_type_faults(inspection.model, accepts)) {
    // A fault that inference found at the same node, such as the declared type of its output, follows from this one.
    nodes.at(fault.node)->metadata[std::string(onnx::fault_note)] = fault.message;
    report::NodeSupport& verdict = inspection.report.nodes.at(fault.node);
    verdict.support = report::Support::unsupported;
    verdict.reason = fault.message;
    verdict.advice = inspect::advice_on_fault;
  }
}

/// Returns whether a node that does not run calls a function that a conversion inlines.
bool has_failing_call(const Inspection& inspection) {
  std::set<std::string, std::less<>> failing;
  for (const report::NodeSupport& node : inspection.report.nodes) {
    if (inspect::is_bad(node.support)) failing.insert(node.node.id);
  }
  bool found = false;
  if (failing.empty()) return found;
  const onnx::Model& model = inspection.model;
  model.graph().for_each_node([&](const onnx::Node& node) {
    if (found || !failing.contains(onnx::ref_of(node).id)) return;
    const onnx::FunctionDefinition* function = model.find_function(node);
    found = function != nullptr && onnx::is_plain_call(function->key);
  });
  return found;
}

/// Builds the converted model with TensorRT if TensorRT did not build the given model, and corrects the verdicts on the
/// nodes of the given model. If the caller chose TensorRT explicitly (the probe is not automatic), keeps these verdicts
/// and uses the build only to find where the network can be cut.
void ask_about_converted(Work& work, Inspection& inspection, const inspect::ProbeOptions& options,
                         const TrialCallback& on_end, const std::function<bool()>& is_stopped) {
  std::vector<report::NodeSupport>& given_nodes = inspection.report.nodes;
  report::ProbeSummary& given = *inspection.report.probe;
  const bool is_answered = given.built || !given.not_built.empty();
  if (is_answered || inspection.prospect.converted == nullptr) return;
  const bool is_for_cut = has_failing_call(inspection);
  if (!options.is_automatic && !is_for_cut) return;
  const onnx::Model& converted = *inspection.prospect.converted;
  const bool has_failed = !inspect::runs(given_nodes).value_or(false);
  std::vector<report::NodeSupport> nodes = inspect::judge_nodes(converted);
  inspect::ProbeOptions of_converted = options;
  of_converted.reduce.clear();
  of_converted.searches = !has_failed || is_for_cut;
  const auto trials = inspect::start_tensorrt(of_converted, is_stopped);
  report::ProbeSummary answer =
      inspect::probe_verdicts(converted, of_converted, *trials, trial_callbacks(work, on_end), nodes);
  if (!options.is_automatic || (has_failed && !answer.built)) {
    given.trials.add(answer.trials);
    if (is_for_cut) inspection.converted_nodes = std::move(nodes);
    return;
  }
  if (answer.built) {
    note_that_converted_runs(given_nodes, "TensorRT builds the result of `graft convert`");
  } else {
    blame_lowered(nodes, given_nodes);
  }
  answer.trials.add(given.trials);
  answer.reduced = std::move(given.reduced);
  answer.not_reduced = std::move(given.not_reduced);
  answer.of_converted = true;
  given = std::move(answer);
}

void check(const ProbeBudget& budget) {
  check_positive("ProbeBudget::trial_seconds", budget.trial_seconds);
  check_positive("ProbeBudget::max_seconds", budget.max_seconds);
  if (budget.max_builds == 0) throw Error("ProbeBudget::max_builds: found 0; the value must be at least 1");
}

std::vector<NodeGroup> groups_of(const std::vector<report::VerdictGroup>& groups,
                                 const std::vector<report::NodeSupport>& nodes) {
  std::vector<NodeGroup> result;
  for (const report::VerdictGroup& group : groups) {
    NodeGroup& made = result.emplace_back();
    for (const report::NodeSupport* node : group.nodes) {
      made.nodes.push_back(static_cast<std::size_t>(node - nodes.data()));
    }
  }
  return result;
}

/// Sets the advice that depends on the whole model: why `convert` does not rewrite a node, and whether the network can
/// be cut.
void correct_advice(Inspection& inspection) {
  std::vector<report::NodeSupport>& nodes = inspection.report.nodes;
  const bool is_judged_inside = !inspection.converted_nodes.empty() || inspection.prospect.converted == nullptr;
  if (!is_judged_inside && has_failing_call(inspection)) {
    inspection.converted_nodes = inspect::judge_nodes(*inspection.prospect.converted, {},
                                                      inspection.release.value_or(inspect::newest_measured_release()));
  }
  inspect::note_obstacles(nodes, inspection.prospect.near_misses);
  inspection.report.can_be_cut = decide_on_cut(nodes, [&] {
    const bool is_inlined = !inspection.converted_nodes.empty();
    return is_inlined ? can_be_cut(*inspection.prospect.converted, inspection.converted_nodes)
                      : can_be_cut(inspection.model, nodes);
  });
}

/// Sets the members of the report that follow from the verdicts, such as its groups and next steps, and returns the
/// report.
report::InspectReport finish(Inspection&& inspection) {
  correct_advice(inspection);
  report::InspectReport& report = inspection.report;
  report.targets_without_plugins = find_targets_without_plugins(report.nodes, report.trials.targets, report.warnings);
  const report::VerdictGroups groups = report::group_verdicts(report.nodes, false);
  report.problems = groups_of(groups.problems, report.nodes);
  report.others = groups_of(groups.others, report.nodes);
  report.plain = groups_of(groups.plain, report.nodes);
  const onnx::Graph& graph = std::as_const(inspection.model).graph();
  report.opset = graph.opset();
  report.weight_bytes = onnx::bytes_of_weights(inspection.model);
  report.inputs = model_ports(graph.inputs());
  report.outputs = model_ports(graph.outputs());
  report.node_counts = onnx::count_nodes(inspection.model);
  report.cost = onnx::cost_of(inspection.model);
  report.fusions = std::move(inspection.prospect.fusions);
  std::size_t judged = 0;
  graph.for_each_node([&](const onnx::Node& node) { report.nodes.at(judged++).cost = onnx::cost_of(node); });
  const bool is_onnx = !report.origin.if_imported();
  // `graft build` replaces such a node too, but leaves the rest of the network as it is.
  bool is_adopted = false;
  graph.for_each_node([&](const onnx::Node& node) { is_adopted = is_adopted || onnx::find_adopted_operator(node); });
  report.next_steps = inspect::next_steps(
      report.nodes, report.is_converted, report.is_built_as_it_is() && !is_adopted, inspection.prospect.fused,
      [&](const std::string& node) { return is_onnx && inspection.nodes_to_define.contains(node); });
  report.may_run_in_onnxruntime = true;
  graph.for_each_node([&](const onnx::Node& node) {
    report.may_run_in_onnxruntime =
        report.may_run_in_onnxruntime && onnx::may_be_of_onnxruntime(inspection.model, node);
  });
  report.model = ModelAccess::make(std::move(inspection.model));
  return std::move(report);
}

/// Creates an inspection with the release and the rules of the options. Throws Error for an unknown release, and if the
/// options set a release together with Judge::parser or Judge::builder, which use the installed TensorRT.
Inspection begin(const InspectOptions& options) {
  Inspection inspection;
  inspection.release = set_rules(options.release, inspection.report.release, inspection.report.rules);
  if (inspection.release && (options.judge == Judge::parser || options.judge == Judge::builder)) {
    throw Error(
        "release: this setting selects the rules of a release, and judge selects the installed TensorRT\nRemove "
        "release or judge");
  }
  return inspection;
}

/// Inspects `inspection.model`, which has the shapes of its file, for `shapes` of its inputs, and returns the completed
/// report.
report::InspectReport inspect(Work& work, Inspection inspection, const InputShapes& shapes,
                              const InspectOptions& options) {
  inspection.report.trials = trial_settings(options);
  judge(work.engine(), inspection, shapes, options.convert);
  if (options.judge == Judge::rule) {
    judge_by_rule_alone(inspection, not_asked_by_rule);
  } else if (inspection.release) {
    judge_by_rule_alone(inspection, not_asked_for_release);
  } else {
    probe(work, inspection, probe_options(options), options.on_trial);
  }
  return finish(std::move(inspection));
}

}  // namespace

inspect::ProbeOptions probe_options(const InspectOptions& options) {
  check(options.budget);
  inspect::ProbeOptions inner{.level = options.judge == Judge::automatic ? Judge::builder : options.judge,
                              .is_automatic = options.judge == Judge::automatic,
                              .trials = {},
                              .shapes = {},
                              .reduce = {}};
  for (const auto& library : options.plugin_libraries) inner.trials.libraries.push_back(library.string());
  inner.trials.tensorrt = options.tensorrt;
  inner.trials.targets = parse_targets(options.targets);
  inner.trials.plugin_override = options.plugin_override;
  inner.trials.limit = options.budget.trial_seconds;
  inner.trials.max_builds = options.budget.max_builds;
  inner.trials.max_seconds = options.budget.max_seconds;
  inner.shapes = trial_settings(options).shapes;
  inner.reduce = options.reduce.string();
  return inner;
}

void probe(Work& work, Inspection& inspection, const inspect::ProbeOptions& options, const TrialCallback& on_end,
           std::unique_ptr<inspect::DriverTrials> trials, const CancelToken& stop) {
  const auto is_stopped = [&work, &stop] { return work.is_cancelled() || stop.is_cancelled(); };
  try {
    if (trials == nullptr) trials = inspect::start_tensorrt(options, is_stopped);
    check_input_ranks(inspection.model, setting_name(Setting::input_shapes));
    inspect::TypeTrials types(options, is_stopped);
    note_type_faults(inspection,
                     [&](const onnx::Model& model, const onnx::Node& node) { return types.builds(model, node); });
    inspection.report.probe = inspect::probe_verdicts(inspection.model, options, *trials, trial_callbacks(work, on_end),
                                                      inspection.report.nodes);
    trials.reset();
    ask_about_converted(work, inspection, options, on_end, is_stopped);
  } catch (const inspect::NoTensorRT& missing) {
    judge_by_rule_alone(inspection, on_one_line(missing.why));
  } catch (const engine::Interrupted&) {
    throw Cancelled();
  }
}

inspect::TrialCallbacks trial_callbacks(Work& work, TrialCallback on_end) {
  const auto on_start = [&work, begin = work.fraction()](const inspect::TrialProgress& trial) {
    work.report(begin + (1 - begin) * trial.fraction,
                trial.number == 0 ? std::string(trial.action)
                                  : fmt::format("{} number {}: {} node{}", trial.action, trial.number, trial.nodes,
                                                trial.nodes == 1 ? "" : "s"));
  };
  return {.on_start = on_start, .on_end = std::move(on_end)};
}

std::optional<inspect::Release> set_rules(const std::string& name, std::string& release,
                                          report::TensorRTIdentity& rules) {
  std::optional<inspect::Release> named;
  if (!name.empty()) {
    named = inspect::release_of(name, "release");
    release = inspect::name_of(*named);
  }
  rules = inspect::identity_of(named.value_or(inspect::newest_measured_release()));
  return named;
}

std::vector<std::string> targets_of_plugins() {
  TargetsByCode targets = default_targets();
  return targets.without_code.empty() ? std::vector<std::string>() : std::move(targets.with_code);
}

std::vector<std::string> find_targets_without_plugins(const std::vector<report::NodeSupport>& nodes,
                                                      const std::vector<std::string>& targets,
                                                      std::vector<std::string>& warnings) {
  std::vector<std::string> missing = split_by_code(targets).without_code;
  std::vector<std::string> plugins;
  for (const report::NodeSupport& node : nodes) {
    // The rules do not name the library, because they know only Graft's own plugins.
    const bool is_own = node.plugin.empty() || node.plugin.find("libgraft_plugins.so") != std::string::npos;
    if (node.support == report::Support::plugin && is_own) plugins.push_back(describe(node.node));
  }
  if (missing.empty() || plugins.empty()) return {};
  warnings.push_back(fmt::format("plugin library: code for {}; plugins do not run on {}, and {}{} needs one",
                                 architectures_text(cuda_architectures()), fmt::join(missing, ", "), plugins.front(),
                                 plugins.size() == 1 ? "" : fmt::format(" (and {} more)", plugins.size() - 1)));
  return missing;
}

void check_types(const graft::onnx::Model& model, const inspect::ProbeOptions& options,
                 const std::function<bool()>& is_stopped) {
  inspect::TypeTrials trials(options, is_stopped);
  try {
    onnx::check_types_and_outputs(
        model, [&](const onnx::Model& inferred, const onnx::Node& node) { return trials.builds(inferred, node); });
  } catch (const engine::Interrupted&) {
    throw Cancelled();
  }
}

std::vector<std::string> file_warnings(const graft::onnx::Model& model, const report::Origin& origin) {
  // Graft's readers of formats other than ONNX wrote the declared shapes and the attributes.
  if (!origin.format.empty()) return {};
  std::vector<std::string> warnings = onnx::unknown_attribute_warnings(model);
  std::set<const onnx::Value*> outputs;
  for (const onnx::Value* output : model.graph().outputs()) {
    if (outputs.insert(output).second) continue;
    warnings.push_back(
        fmt::format("{}: two outputs have the name '{}', and the outputs of an engine must have different names; "
                    "rename one of them",
                    model.source, output->name));
  }
  for (std::string& warning : contradicted_shape_warnings(model)) warnings.push_back(std::move(warning));
  return warnings;
}

std::optional<std::string> unknown_rank_warning(const graft::onnx::Model& model) {
  const onnx::Value* input = find_input_without_rank(model);
  if (input == nullptr) return std::nullopt;
  return fmt::format(
      "input '{0}' has no shape, not even a rank, and TensorRT reads it as a scalar: set its shape, as in {1} "
      "{0}:1x3x224x224",
      input->name, setting_name(Setting::input_shapes));
}

void judge_by_rule_alone(Inspection& inspection, std::string why) {
  note_type_faults(inspection);
  inspection.report.not_asked = std::move(why);
}

report::TrialSettings trial_settings(const InspectOptions& options) {
  report::TrialSettings settings{.shapes = options.shape_texts,
                                 .targets = parse_targets(options.targets),
                                 .plugin_libraries = options.plugin_libraries,
                                 .tensorrt = options.tensorrt,
                                 .plugin_override = options.plugin_override};
  for (const auto& shape : options.shapes) settings.shapes.push_back(to_string(shape));
  return settings;
}

bool is_release(const std::string& name) { return inspect::find_release(name).has_value(); }

std::vector<std::string> releases() { return inspect::release_names(); }

report::InspectReport inspect(const Model& model, const InspectOptions& options) {
  Work work(options.watch);
  return work.run([&] {
    Inspection inspection = begin(options);
    inspection.report.file = model.source();
    inspection.report.origin = ModelAccess::origin_of(model);
    inspection.model = model_of(model).clone();
    return inspect(work, std::move(inspection), {}, options);
  });
}

report::InspectReport inspect(const std::filesystem::path& file, const ImportOptions& import,
                              const InspectOptions& options) {
  Work work(options.watch);
  return work.run([&] {
    Inspection inspection = begin(options);
    report::InspectReport& report = inspection.report;
    report.file = file;
    report.import = {.weights = import.weights, .shapes = import.shapes, .outputs = import.outputs, .watch = {}};
    const InputShapes shapes = to_internal(import.shapes);
    inspection.model = read(file, import, shapes, &report.origin,
                            [&](std::size_t /*done*/, std::size_t /*total*/) { work.check_cancelled(); });
    note_given_shapes(inspection, shapes);
    return inspect(work, std::move(inspection), shapes, options);
  });
}

}  // namespace graft::toolkit
