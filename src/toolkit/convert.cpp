// `convert`: runs the pipeline of passes on a copy of the model, and checks the result.
#include "graft/toolkit/convert.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "core/suggest.hpp"
#include "graft/setting.hpp"
#include "graft/toolkit/commands.hpp"
#include "inspect/advice.hpp"
#include "inspect/f64_nodes.hpp"
#include "inspect/forecast.hpp"
#include "inspect/size_ranges.hpp"
#include "inspect/tensorrt_release.hpp"
#include "onnx/check_types.hpp"
#include "onnx/count_nodes.hpp"
#include "onnx/declared_shapes.hpp"
#include "onnx/functions.hpp"
#include "onnx/node_cost.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_node.hpp"
#include "passes/pipeline.hpp"
#include "rules/rule_passes.hpp"
#include "toolkit/access.hpp"
#include "toolkit/cut.hpp"
#include "toolkit/gpu_targets.hpp"
#include "toolkit/inspect.hpp"
#include "toolkit/ports.hpp"
#include "toolkit/read.hpp"
#include "toolkit/value_check.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {
namespace {

/// The largest value of ConvertOptions::unroll, and of the command-line option for it.
constexpr std::int64_t largest_unroll = 1'000'000;

/// Throws Error if no pass is named `name`. The message begins with the name of `setting`, the option that has this
/// value.
void check_pass_name(const std::string& name, Setting setting) {
  const std::vector<std::string> known = pass_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const auto meant = nearest(name, known);
  throw Error(fmt::format("{}: there is no pass {}; {}the passes are {}", setting_name(setting), name,
                          meant ? fmt::format("did you mean {}? ", *meant) : "", fmt::join(known, ", ")));
}

std::size_t count_of(const graft::onnx::Model& model, std::string_view op) {
  std::size_t count = 0;
  model.graph().for_each_node([&](const onnx::Node& node) { count += node.is(op) ? 1 : 0; });
  return count;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Returns the nodes of the model that TensorRT does not run according to the rules, without a conversion and for the
/// shapes in the file.
std::vector<report::NodeSupport> failing_nodes(const graft::onnx::Model& model, const inspect::Release& release) {
  std::vector<report::NodeSupport> nodes = inspect::judge_nodes(inspect::inferred_copy(model), {}, release);
  std::erase_if(nodes, [](const report::NodeSupport& node) { return !inspect::is_bad(node.support); });
  return nodes;
}

/// Changes the verdict on ONNX's operators that run only as plugins to `unsupported`, for a build without plugins.
/// Graft's operators then run as their functions.
void refuse_plugins(std::vector<report::NodeSupport>& nodes) {
  for (report::NodeSupport& node : nodes) {
    if (node.support != report::Support::plugin || !onnx::is_standard_operator("", node.op)) continue;
    node.support = report::Support::unsupported;
    node.reason += (node.reason.empty() ? "" : "; ") +
                   std::string("only a plugin of Graft runs the node, and plugins are disabled");
    node.advice = fmt::format("remove {}", setting_name(Setting::without_plugins));
  }
}

/// Returns the sizes of inputs that are dynamic in `before` and fixed in `after`, by input name. The original model is
/// run with the same sizes, as with --input.
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

/// The signal-to-noise ratio in dB that each output must have if the options request Quantized::symmetric, which rounds
/// to larger steps than the model.
constexpr double least_snr_of_symmetric = 20;

/// Compares the values of the converted model with the values of the original. Sets only `values`,
/// `values_not_compared` and `seconds.compare`, because another thread runs TensorRT on the model at the same time.
void compare_values(report::ConvertReport& report, const graft::onnx::Model& after, int threads, const Watch& watch) {
  const ConvertOptions& options = report.options;
  if (!options.check) {
    report.values_not_compared = "the check of the result was skipped";
  } else if (!options.prove) {
    report.values_not_compared = fmt::format("no model is run ({})", setting_name(Setting::without_proofs));
  } else if (!options.rules.empty()) {
    report.values_not_compared = "rules may change what the network computes";
  } else if (report.rewrites.empty()) {
    report.values_not_compared = "nothing was rewritten";
  } else {
    const auto start = std::chrono::steady_clock::now();
    const graft::onnx::Model& before = model_of(report.original);
    verify::VerifyOptions common;
    common.shapes = fixed_sizes(before, after);
    // The second run has large integers where the inputs allow it. A third run would only have other values, and each
    // rewrite was proven on many.
    common.seeds = 2;
    common.threads = threads;
    if (options.quantized == report::Quantized::symmetric) common.snr_db = least_snr_of_symmetric;
    report.values = check_values(before, after, common, options.engine, watch, true);
    report.seconds.compare = seconds_since(start);
  }
}

/// The state of a conversion while its steps run: the report as far as it is complete, and values that later steps
/// need.
struct Conversion {
  report::ConvertReport report;
  graft::passes::ConvertOptions pass_options;
  InputShapes shapes_of_rules;              ///< Shapes that the user's rules give to inputs.
  std::optional<inspect::Release> release;  ///< The target release, if the options name one.
  /// The result with the ONNX functions of its Graft nodes, with which the values are compared; empty if the result
  /// itself has the functions.
  std::optional<graft::onnx::Model> with_functions;

  /// Returns the release whose rules decide which nodes TensorRT runs: the target release or, if none is set, the
  /// newest release that Graft knows.
  [[nodiscard]] inspect::Release rules_release() const { return release.value_or(inspect::newest_measured_release()); }
};

/// Creates a conversion and sets the members that only depend on the options. Throws Error for an unknown pass or
/// release, and for rules that cannot be read.
Conversion begin(Work& work, const ConvertOptions& options) {
  for (const std::string& name : options.only) check_pass_name(name, Setting::passes);
  for (const std::string& name : options.without) check_pass_name(name, Setting::passes_left_out);
  Conversion conversion;
  report::ConvertReport& report = conversion.report;
  report.options = options;
  report.options.watch = {};
  report.options.inspect.watch = {};
  report.options.inspect.on_trial = {};
  report.options.inspect.targets = parse_targets(options.inspect.targets);
  report.targets_of_plugins = targets_of_plugins();
  conversion.release = set_rules(options.release, report.release, report.rules);
  graft::passes::ConvertOptions& inner = conversion.pass_options;
  inner.plugins = options.plugins;
  inner.only = options.only;
  inner.without = options.without;
  if (options.unroll < 0 || options.unroll > largest_unroll) {
    throw Error(fmt::format("{} is {}; it must be from 0 to {}", setting_name(Setting::unroll), options.unroll,
                            largest_unroll));
  }
  inner.unroll = options.unroll;
  inner.quantized = options.quantized;
  if (conversion.release) {
    inner.guards = inspect::guards_for(*conversion.release);
    for (std::string& name : inspect::lowerings_for(*conversion.release)) inner.guards.push_back(std::move(name));
  }
  inner.has_multi_head_attention = inspect::has_multi_head_attention(conversion.rules_release());
  inner.refusal_of_plugins_in_bodies = inspect::refusal_of_plugins_in_bodies(conversion.rules_release()).value_or("");
  inner.prove = options.prove;
  inner.prove_each = options.prove_each;
  if (!options.rules.empty()) {
    rules::RulePasses own = rules::rule_passes(options.rules);
    inner.extra_passes = std::move(own.passes);
    conversion.shapes_of_rules = std::move(own.input_shapes);
  }
  inner.extra_passes.push_back(rules::library_fusion_pass());
  const double share = options.check ? 0.5 : 1;  // the check reports the other half
  inner.progress = [&work, share](std::string_view pass, std::size_t done, std::size_t total) {
    work.report(share * static_cast<double>(done + 1) / static_cast<double>(total + 1), pass);
  };
  return conversion;
}

/// Runs the passes and sets all members of the report except the results of the check.
void rewrite(Work& work, Conversion& conversion) {
  report::ConvertReport& report = conversion.report;
  const ConvertOptions& options = report.options;
  graft::onnx::Model model = model_of(report.original).clone();
  // Where a proof cannot run, the conversion continues without it. So a missing engine has to be reported before.
  const bool needs_second = options.engine == CpuEngine::onnxruntime || options.engine == CpuEngine::both;
  if (options.prove && needs_second) (void)work.engine().name();
  report.nodes_before = onnx::count_nodes(model);
  report.cost_before = onnx::cost_of(inspect::inferred_copy(model));
  const inspect::Release release = conversion.rules_release();
  const std::vector<std::string> of_file = file_warnings(model, report.origin);
  report.failed_before = failing_nodes(model, release);
  std::vector<std::string> left_out;
  if (options.prove) left_out = engines_left_out(work.used(), options.engine, Purpose::proofs, {&model});
  const auto start = std::chrono::steady_clock::now();
  static_cast<report::RewriteReport&>(report) = graft::passes::convert(work.engine(), model, conversion.pass_options);
  if (options.check && options.release.empty()) check_input_ranks(model, setting_name(Setting::input_shapes));
  report.warnings.insert(report.warnings.begin(), of_file.begin(), of_file.end());
  if (std::optional<std::string> warning = inspect::f64_warning(model)) report.warnings.push_back(std::move(*warning));
  if (auto warning = unknown_rank_warning(model)) report.warnings.push_back(*std::move(warning));
  for (std::string& warning : frozen_size_warnings(ModelAccess::frozen_sizes_of(report.original), report)) {
    report.warnings.push_back(std::move(warning));
  }
  if (report.proofs_run != 0) {
    for (const std::string& line : left_out) {
      report.warnings.push_back(fmt::format("proofs that need this node: {}", line));
    }
  }
  report.seconds.prove = report.proof_seconds;
  report.seconds.rewrite = seconds_since(start) - report.seconds.prove;
  if (!options.functions) {
    if (options.check) conversion.with_functions = model.clone();
    report.nodes_without_function = detach_functions(model);
  }
  report.nodes = inspect::judge_nodes(model, {}, release);
  if (!report.uses_plugins()) refuse_plugins(report.nodes);
  report.nodes_after = onnx::count_nodes(model);
  report.cost_after = onnx::cost_of(model);
  report.weight_bytes = onnx::bytes_of_weights(model);
  report.transpositions = count_of(model, "Transpose");
  report.inputs = model_ports(std::as_const(model).graph().inputs());
  report.outputs = model_ports(std::as_const(model).graph().outputs());
  report.model = ModelAccess::make(std::move(model));
}

/// Returns the converted model and the verdicts on its nodes as an Inspection, the argument of `probe`.
Inspection inspection_of(const report::ConvertReport& report) {
  Inspection inspection;
  inspection.model = inspect::inferred_copy(model_of(report.model));
  inspection.has_checked_types = true;
  inspection.report.nodes = report.nodes;
  return inspection;
}

/// The check of the result of a conversion. It compares the values of the result with the values of the original, and
/// at the same time builds the result with the installed TensorRT, for suggested sizes if the options have no sizes.
class ResultCheck {
 public:
  /// Starts the process of TensorRT, which loads while the network is rewritten. If `asks_tensorrt` is false, starts
  /// nothing, because only the rules give verdicts then. Throws the errors of `start_tensorrt` except NoTensorRT.
  ResultCheck(Work& work, const ConvertOptions& options, bool asks_tensorrt) : work_(work), options_(options) {
    if (!asks_tensorrt) return;
    InspectOptions inspect_options = options_.inspect;
    inspect_options.reduce.clear();
    probe_ = probe_options(inspect_options);
    probe_->plugins = options_.plugins != Plugins::never;
    try {
      trials_ = inspect::start_tensorrt(
          *probe_, [this, stop = stop_tensorrt_] { return work_.is_cancelled() || stop.is_cancelled(); });
    } catch (const inspect::NoTensorRT&) {
      trials_ = nullptr;  // `run` tries again and reports the reason
    }
  }

  /// Throws Error for ranges of sizes that the inputs of the model cannot have.
  void check_ranges(const graft::onnx::Model& model) const {
    if (probe_) static_cast<void>(inspect::SizeRanges(model, probe_->shapes));
  }

  /// Checks the ranges with the model before its conversion as check_ranges does, unless the user's rules may still
  /// change the sizes. Also throws the errors of check_types or, if TensorRT is not run, of check_types_and_outputs.
  void check_ranges_before(const graft::onnx::Model& model) const {
    if (trials_ != nullptr) {
      check_types(model, *probe_, [this] { return work_.is_cancelled(); });
    } else {
      onnx::check_types_and_outputs(model);
    }
    if (options_.rules.empty()) check_ranges(model);
  }

  /// Runs the check and sets the verdicts on the nodes, `check`, `not_checked` and the results of the comparison in the
  /// report. May be called once. Throws the errors of `probe`.
  void run(Conversion& conversion) {
    report::ConvertReport& report = conversion.report;
    const graft::onnx::Model& after = conversion.with_functions ? *conversion.with_functions : model_of(report.model);
    work_.report(0, "comparing values");
    if (!probe_) {
      compare_values(report, after, 0, options_.watch);
      report.not_checked = options_.check && conversion.release ? not_asked_for_release : not_asked_by_rule;
      return;
    }
    Inspection inspection = inspection_of(report);
    // One core is left to TensorRT's builder, whose time is limited.
    const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 1);
    run_side_by_side(
        [&](const CancelToken& cancel) { compare_values(report, after, threads, {.progress = {}, .cancel = cancel}); },
        [&] { probe(work_, inspection, *probe_, options_.inspect.on_trial, std::move(trials_), stop_tensorrt_); },
        stop_tensorrt_, options_.watch.cancel);
    report.nodes = std::move(inspection.report.nodes);
    report.check = std::move(inspection.report.probe);
    report.not_checked = std::move(inspection.report.not_asked);
  }

 private:
  Work& work_;
  const ConvertOptions& options_;
  std::optional<inspect::ProbeOptions> probe_;
  std::unique_ptr<inspect::DriverTrials> trials_;
  CancelToken stop_tensorrt_;  ///< Cancelled if the comparison throws.
};

/// Sets the advice that depends on the whole model: why no rewrite applied to a node, and whether the network can be
/// cut.
void correct_advice(report::ConvertReport& report) {
  inspect::note_obstacles(report.nodes, report.near_misses);
  report.can_be_cut = decide_on_cut(
      report.nodes, [&] { return can_be_cut(inspect::inferred_copy(model_of(report.model)), report.nodes); });
}

/// Sets the command that repeats the comparison of the values, which needs the file of the result.
void set_command(report::ConvertReport& report) {
  if (report.output.empty() || !report.values.can_be_repeated()) return;
  report.values.command = verify_command(report, report.output);
}

/// Converts the model of a conversion that begin() created and returns the report. The caller must have set the members
/// of the report that describe the file.
report::ConvertReport convert(Work& work, Conversion& conversion, ResultCheck& check) {
  report::ConvertReport& report = conversion.report;
  check.check_ranges_before(model_of(report.original));
  rewrite(work, conversion);
  check.check_ranges(model_of(report.model));  // throws before the result is written
  if (!report.options.output.empty()) save(report, report.options.output);
  check.run(conversion);
  report.targets_without_plugins =
      find_targets_without_plugins(report.nodes, report.options.inspect.targets, report.warnings);
  set_command(report);
  correct_advice(report);
  return std::move(report);
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

report::ConvertReport convert(const Model& model, const ConvertOptions& options) {
  Work work(options.watch, options.engine, Purpose::proofs);
  return work.run([&] {
    Conversion conversion = begin(work, options);
    if (options.prove && !work.engine().can_run()) static_cast<void>(work.engine().compile(model_of(model)));
    ResultCheck check(work, options, conversion.report.asks_tensorrt());
    conversion.report.file = model.source();
    conversion.report.origin = ModelAccess::origin_of(model);
    conversion.report.original = model;
    return convert(work, conversion, check);
  });
}

report::ConvertReport convert(const std::filesystem::path& file, const ImportOptions& import,
                              const ConvertOptions& options) {
  Work work(options.watch, options.engine, Purpose::proofs);
  return work.run([&] {
    Conversion conversion = begin(work, options);
    conversion.pass_options.input_shapes = to_internal(import.shapes);
    report::ConvertReport& report = conversion.report;
    ResultCheck check(work, options, report.asks_tensorrt());
    work.report(0, "reading " + file.string());
    report.file = file;
    report.import = {.weights = import.weights, .shapes = import.shapes, .outputs = import.outputs, .watch = {}};
    // Readers of formats other than ONNX need the shapes while they read.
    InputShapes reading_shapes = conversion.pass_options.input_shapes;
    reading_shapes.merge(conversion.shapes_of_rules);
    const auto start = std::chrono::steady_clock::now();
    graft::onnx::Model model = read(file, import, reading_shapes, &report.origin,
                                    [&](std::size_t /*done*/, std::size_t /*total*/) { work.check_cancelled(); });
    report.seconds.read = seconds_since(start);
    auto frozen = frozen_sizes_of(model, file, import);
    report.original = ModelAccess::make(std::move(model), std::move(frozen), report.origin);
    return convert(work, conversion, check);
  });
}

void save(ConvertReport& report, const std::filesystem::path& output) {
  const auto start = std::chrono::steady_clock::now();
  report.data_file = onnx::write_onnx(model_of(report.model), output);
  report.output = output;
  report.seconds.write = seconds_since(start);
  set_command(report);
}

}  // namespace graft::toolkit
