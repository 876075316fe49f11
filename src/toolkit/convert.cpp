// `convert`: runs the pipeline of passes on a copy of the model, and checks the result.
#include "graft/toolkit/convert.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/suggest.hpp"
#include "graft/setting.hpp"
#include "inspect/advice.hpp"
#include "inspect/f64_nodes.hpp"
#include "inspect/forecast.hpp"
#include "inspect/size_ranges.hpp"
#include "inspect/tensorrt_release.hpp"
#include "inspect/tensorrt_support.hpp"
#include "onnx/check_types.hpp"
#include "onnx/declared_shapes.hpp"
#include "onnx/functions.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_node.hpp"
#include "passes/pipeline.hpp"
#include "rules/rule.hpp"
#include "rules/rule_passes.hpp"
#include "toolkit/access.hpp"
#include "toolkit/convert.hpp"
#include "toolkit/cut.hpp"
#include "toolkit/read.hpp"
#include "toolkit/side_by_side.hpp"
#include "toolkit/verify_options.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {
namespace {

std::vector<std::string> failures_of(const std::vector<report::RuleOutcome>& rules) {
  std::vector<std::string> failures;
  for (const report::RuleOutcome& rule : rules) {
    if (!rule.failed()) continue;
    std::string text = fmt::format("{}: {}: the rule was applied in {} of {} places", rule.place, rule.rule,
                                   rule.applied, rule.matched);
    for (const std::string& note : rule.notes) text += "\n" + note;
    failures.push_back(std::move(text));
  }
  return failures;
}

struct InternalOptions {
  graft::passes::ConvertOptions convert;
  std::map<std::string, Shape, std::less<>> shapes_of_rules;  ///< Shapes that the user's rules give to inputs.
};

InternalOptions internal_options(Work& work, const ConvertOptions& options) {
  for (const std::string& name : options.only) check_pass_name(name, "ConvertOptions::only");
  for (const std::string& name : options.without) check_pass_name(name, "ConvertOptions::without");
  InternalOptions result;
  graft::passes::ConvertOptions& inner = result.convert;
  inner.plugins = options.plugins;
  inner.only = options.only;
  inner.without = options.without;
  const inspect::Release release =
      options.release.empty() ? inspect::newest_measured_release() : inspect::release_of(options.release, "release");
  if (!options.release.empty()) inner.guards = inspect::guards_for(release);
  inner.refusal_of_plugins_in_bodies = inspect::refusal_of_plugins_in_bodies(release).value_or("");
  inner.prove = options.prove;
  inner.prove_each = options.prove_each;
  if (!options.rules.empty()) {
    std::vector<rules::Rule> read = rules::read_rules(options.rules);
    result.shapes_of_rules = rules::shapes_of(read);
    inner.extra_passes = rules::rule_passes(std::move(read));
  }
  inner.extra_passes.push_back(rules::library_fusion_pass());
  inner.progress = [&work](std::string_view pass, std::size_t done, std::size_t total) {
    work.report(static_cast<double>(done + 1) / static_cast<double>(total + 1), pass);
  };
  return result;
}

std::size_t count_of(const graft::onnx::Model& model, std::string_view op) {
  std::size_t count = 0;
  model.graph().for_each_node([&](const onnx::Node& node) { count += node.is(op) ? 1 : 0; });
  return count;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Returns the nodes that TensorRT does not run, in a model that is not converted, for its own shapes.
std::vector<report::NodeSupport> failing_nodes(const graft::onnx::Model& model, const inspect::Release& release) {
  graft::onnx::Model copy = model.clone();
  inspect::infer_and_note_faults(copy, {});
  std::vector<report::NodeSupport> nodes = inspect::judge_nodes(copy, {}, release);
  std::erase_if(nodes, [](const report::NodeSupport& node) { return !inspect::is_bad(node.support); });
  return nodes;
}

/// Changes the verdict on ONNX's operators that run only as plugins to `unsupported`, for a build without plugins.
/// Graft's operators then run as their functions.
void refuse_plugins(std::vector<report::NodeSupport>& nodes) {
  for (report::NodeSupport& node : nodes) {
    if (node.support != report::Support::plugin || !onnx::is_standard_operator("", node.op)) continue;
    node.support = report::Support::unsupported;
    node.reason +=
        (node.reason.empty() ? "" : "; ") + std::string("only a plugin of Graft's runs it, and plugins are disabled");
    node.advice = fmt::format("leave out {}", setting_name(Setting::without_plugins));
  }
}

/// Returns the shapes of inputs whose sizes the conversion has fixed, as --input does. The model before the conversion
/// is run with the same shapes.
std::map<std::string, std::vector<std::int64_t>, std::less<>> fixed_sizes(const graft::onnx::Model& before,
                                                                          const graft::onnx::Model& after) {
  const auto is_fixed = [](const onnx::Value& input) {
    return input.shape &&
           std::all_of(input.shape->begin(), input.shape->end(), [](const Dim& dim) { return dim.is_constant(); });
  };
  std::map<std::string, std::vector<std::int64_t>, std::less<>> sizes;
  for (const onnx::Value* input : before.graph().inputs()) {
    const onnx::Value* same = after.graph().find_local(input->name);
    if (is_fixed(*input) || same == nullptr || !same->is_input || !is_fixed(*same)) continue;
    for (const Dim& dim : *same->shape) sizes[input->name].push_back(dim.value());
  }
  return sizes;
}

/// Compares the values of the converted model with the values of the original. Sets only `values`,
/// `values_not_compared` and `seconds.compare`, because another thread runs TensorRT on the model at the same time.
void compare_values(Conversion& conversion, const ConvertOptions& options, int threads, const Watch& watch) {
  if (!options.check) {
    conversion.values_not_compared = "the check of the result was skipped";
  } else if (!options.prove) {
    conversion.values_not_compared = fmt::format("no model is run ({})", setting_name(Setting::without_proofs));
  } else if (!options.rules.empty()) {
    conversion.values_not_compared = "rules may change what the network computes";
  } else if (conversion.report.rewrites.empty()) {
    conversion.values_not_compared = "nothing was rewritten";
  } else {
    const auto start = std::chrono::steady_clock::now();
    const graft::onnx::Model& after = conversion.with_functions ? *conversion.with_functions : conversion.model;
    verify::VerifyOptions common;
    common.shapes = fixed_sizes(conversion.original, after);
    // The second run has large integers where the inputs allow it. A third run would only have other numbers, and each
    // rewrite was proven on many.
    common.seeds = 2;
    common.threads = threads;
    conversion.values = check_values(conversion.original, after, common, options.engine, watch, true);
    conversion.seconds.compare = seconds_since(start);
  }
}

/// Runs the passes and sets all members of the conversion except the results of the check.
void rewrite(Work& work, Conversion& conversion, const graft::passes::ConvertOptions& inner,
             const ConvertOptions& options, const std::vector<passes::FrozenSize>& frozen) {
  graft::onnx::Model& model = conversion.model;
  // Where a proof cannot run, the conversion continues without it. So a missing engine has to be reported before.
  const bool needs_second = options.engine == CpuEngine::onnxruntime || options.engine == CpuEngine::both;
  if (options.prove && needs_second) (void)work.engine().name();
  conversion.is_proven = options.prove;
  conversion.uses_plugins = options.plugins != Plugins::never;
  conversion.targets_of_plugins = targets_of_plugins();
  conversion.nodes_before = onnx::count_nodes(model);
  conversion.options = options;
  conversion.options.watch = {};
  conversion.options.inspect.watch = {};
  if (!options.release.empty()) conversion.release = inspect::release_of(options.release, "release");
  const inspect::Release release = conversion.release.value_or(inspect::newest_measured_release());
  const std::vector<std::string> of_file = file_warnings(model, conversion.origin);
  conversion.failed_before = failing_nodes(model, release);
  std::vector<std::string> left_out;
  if (options.prove) left_out = engines_left_out(work.used(), options.engine, Purpose::proofs, {&model});
  const auto start = std::chrono::steady_clock::now();
  report::ConvertReport& report = conversion.report;
  report = graft::passes::convert(work.engine(), model, inner);
  if (options.check && options.release.empty()) check_input_ranks(model, setting_name(Setting::input_shapes));
  report.warnings.insert(report.warnings.begin(), of_file.begin(), of_file.end());
  if (std::optional<std::string> warning = inspect::f64_warning(model)) report.warnings.push_back(std::move(*warning));
  if (auto warning = unknown_rank_warning(model)) report.warnings.push_back(*std::move(warning));
  for (std::string& warning : frozen_size_warnings(frozen, report)) report.warnings.push_back(std::move(warning));
  if (report.proofs_run != 0) {
    for (const std::string& line : left_out) {
      report.warnings.push_back(fmt::format("proofs that need this node: {}", line));
    }
  }
  conversion.seconds.prove = report.proof_seconds;
  conversion.seconds.rewrite = seconds_since(start) - conversion.seconds.prove;
  if (!options.functions) {
    if (options.check) conversion.with_functions = model.clone();
    conversion.nodes_without_function = detach_functions(model);
  }
  conversion.nodes = inspect::judge_nodes(model, {}, release);
  if (!conversion.uses_plugins) refuse_plugins(conversion.nodes);
  conversion.nodes_after = onnx::count_nodes(model);
  conversion.weight_bytes = onnx::bytes_of_weights(model);
  conversion.transpositions = count_of(model, "Transpose");
}

std::vector<NodeSupport> problems_of(const Conversion& conversion) {
  std::vector<NodeSupport> problems = conversion.nodes;
  std::erase_if(problems, [](const NodeSupport& node) {
    return node.support == Support::native || node.support == Support::lowered || node.support == Support::plugin;
  });
  return problems;
}

ConvertResult result_of(Conversion&& conversion) {
  const report::ConvertReport& report = conversion.report;
  ConvertResult result;
  result.warnings = passes::all_warnings(report);
  result.failed_rules = failures_of(report.rules);
  result.proofs_run = report.proofs_run;
  result.choices = report.choices;
  result.rewrites = report.rewrites;
  result.rejected = report.rejected;
  result.runs = conversion.runs();
  result.problems = problems_of(conversion);
  result.check = conversion.check;
  result.not_checked = conversion.not_checked;
  if (conversion.values.report) result.verified = conversion.values.report->verdict();
  result.not_verified = conversion.values.failure.empty() ? conversion.values_not_compared : conversion.values.failure;
  result.model = ModelAccess::make(conversion.model.clone());
  result.details = std::make_shared<const Conversion>(std::move(conversion));
  return result;
}

}  // namespace

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  const passes::Pass library_fusions = rules::library_fusion_pass();
  for (const passes::Pass& pass : passes::pipeline()) {
    names.emplace_back(pass.name);
    if (pass.name == library_fusions.after) names.emplace_back(library_fusions.name);
  }
  return names;
}

void check_pass_name(const std::string& name, std::string_view option) {
  const std::vector<std::string> known = pass_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const auto meant = nearest(name, known);
  throw Error(fmt::format("{}: there is no pass {}; {}the passes are {}", option, name,
                          meant ? fmt::format("did you mean {}? ", *meant) : "", fmt::join(known, ", ")));
}

ConvertResult convert(const Model& model, const ConvertOptions& options) {
  Work work(options.watch, options.engine, Purpose::proofs);
  return work.run([&] {
    const graft::passes::ConvertOptions inner = internal_options(work, options).convert;
    if (options.prove && !work.engine().can_run()) static_cast<void>(work.engine().compile(model_of(model)));
    std::optional<inspect::ProbeOptions> probed;
    if (options.check && options.release.empty()) {
      probed = probe_options(options.inspect);
      probed->level = report::Judge::builder;
      probed->is_automatic = true;
      probed->reduce.clear();
    }
    ResultCheck check(options, probed);
    check.check_ranges_before(model_of(model));
    Conversion conversion;
    conversion.file = model.source();
    conversion.origin = ModelAccess::origin_of(model);
    conversion.original = model_of(model).clone();
    conversion.model = model_of(model).clone();
    rewrite(work, conversion, inner, options, ModelAccess::frozen_sizes_of(model));
    check.check_ranges(conversion.model);
    check.run(work, conversion, options.watch);
    return result_of(std::move(conversion));
  });
}

std::optional<bool> Conversion::runs() const {
  const std::optional<bool> by_nodes = inspect::runs(nodes);
  // Verdicts of the parser are sufficient, for example for a cut: only a check with the builder needs a build.
  const bool is_to_be_built = check && (check->judge == report::Judge::builder || !check->not_built.empty());
  const bool is_unknown = by_nodes.value_or(false) && is_to_be_built && !check->built;
  return is_unknown ? std::nullopt : by_nodes;
}

bool Conversion::are_values_kept() const {
  if (!values.report) return true;
  const report::Verdict verdict = values.report->verdict();
  return verdict == report::Verdict::same || verdict == report::Verdict::nothing_compared;
}

bool Conversion::is_complete() const { return are_rules_done() && are_values_kept() && runs().value_or(false); }

ResultCheck::ResultCheck(const ConvertOptions& options, std::optional<inspect::ProbeOptions> probe)
    : options_(options), probe_(std::move(probe)) {
  if (!probe_) return;
  probe_->plugins = options_.plugins != Plugins::never;
  try {
    trials_ = inspect::start_tensorrt(*probe_, [cancel = options_.watch.cancel, stop = stop_tensorrt_] {
      return cancel.is_cancelled() || stop.is_cancelled();
    });
  } catch (const inspect::NoTensorRT&) {
    trials_ = nullptr;  // `run` tries again and reports the reason
  }
}

void ResultCheck::check_ranges(const graft::onnx::Model& model) const {
  if (probe_) static_cast<void>(inspect::SizeRanges(model, probe_->shapes));
}

void ResultCheck::check_ranges_before(const graft::onnx::Model& model) const {
  if (probe_ && trials_ != nullptr) {
    check_types(model, *probe_, [cancel = options_.watch.cancel] { return cancel.is_cancelled(); });
  } else {
    onnx::check_types_and_outputs(model);
  }
  if (!options_.rules.empty()) return;
  check_ranges(model);
}

void ResultCheck::run(Conversion& conversion, const Watch& watch, const TrialCallback& on_end) {
  Work work(watch);
  work.run([&] {
    run(work, conversion, watch, on_end);
    return true;
  });
}

void ResultCheck::run(Work& work, Conversion& conversion, const Watch& watch, const TrialCallback& on_end) {
  Inspection inspection;
  if (probe_) inspection = inspection_of(conversion);
  work.report(0, "comparing values");
  const auto compare = [&](int threads, const CancelToken& cancel) {
    compare_values(conversion, options_, threads, {.progress = {}, .cancel = cancel});
  };
  if (probe_) {
    // One core is left to TensorRT's builder, whose time is limited.
    const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 1);
    run_side_by_side([&](const CancelToken& cancel) { compare(threads, cancel); },
                     [&] { probe(work, inspection, *probe_, on_end, std::move(trials_), stop_tensorrt_); },
                     stop_tensorrt_, watch.cancel);
  } else {
    compare(0, watch.cancel);
  }
  if (probe_) {
    conversion.probe = probe_;
    conversion.nodes = std::move(inspection.report.nodes);
    conversion.check = std::move(inspection.report.probe);
    conversion.not_checked = std::move(inspection.report.not_asked);
  } else {
    conversion.not_checked = options_.check && conversion.release ? not_asked_for_release : not_asked_by_rule;
  }
  inspect::note_obstacles(conversion.nodes, conversion.report.near_misses);
  if (inspect::advises_cut(conversion.nodes) && !can_be_cut(inspection_of(conversion))) {
    inspect::withdraw_cut(conversion.nodes);
  }
}

bool Conversion::are_rules_done() const {
  return std::none_of(report.rules.begin(), report.rules.end(),
                      [](const report::RuleOutcome& rule) { return rule.failed(); });
}

Conversion convert_file(const ConvertRequest& request, const ResultCheck& check) {
  Work work(request.options.watch, request.options.engine, Purpose::proofs);
  return work.run([&] {
    auto [inner, shapes_of_rules] = internal_options(work, request.options);
    inner.input_shapes = to_internal(request.import.shapes);
    work.report(0, "reading " + request.file.string());
    Conversion result;
    result.file = request.file;
    result.import = {.weights = request.import.weights,
                     .shapes = request.import.shapes,
                     .outputs = request.import.outputs,
                     .watch = {}};
    // Readers of other formats than ONNX need the shapes while they read.
    InputShapes reading_shapes = inner.input_shapes;
    reading_shapes.merge(shapes_of_rules);
    const auto start = std::chrono::steady_clock::now();
    result.model = read(request.file, request.import, reading_shapes, request.shapes_name, &result.origin);
    result.seconds.read = seconds_since(start);
    check.check_ranges_before(result.model);
    result.original = result.model.clone();
    const std::vector<passes::FrozenSize> frozen = frozen_sizes_of(result.model, request.file, request.import);
    rewrite(work, result, inner, request.options, frozen);
    return result;
  });
}

void write(Conversion& conversion, const std::filesystem::path& output) {
  const auto start = std::chrono::steady_clock::now();
  conversion.data_file = onnx::write_onnx(conversion.model, output);
  conversion.output = output;
  conversion.seconds.write = seconds_since(start);
}

}  // namespace graft::toolkit
