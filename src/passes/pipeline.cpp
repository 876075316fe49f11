// The ordered list of passes, with the reason for the position of each, and the loop that runs them.
#include "passes/pipeline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/check_operators.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/shape_inference.hpp"
#include "passes/cleanup/unfreeze_batch.hpp"
#include "passes/operator_fusion.hpp"
#include "passes/rewriter.hpp"
#include "runtime/budget.hpp"

namespace graft::passes {
namespace {

/// Returns the passes that run before the operator fusions, in order.
std::vector<Pass> passes_before_fusions() {
  return {
      {"inline_functions", "functions of exporters hide their nodes from the other passes",
       inline_functions_of_exporters, PassKind::cleanup},
      {"upgrade_opset", "the other passes and the functions of Graft's operators need opset 17 or later",
       upgrade_model_opset, PassKind::cleanup},
      {"count_axes_from_front", "the other passes expect permutations with axes counted from the front",
       count_axes_from_front},
      {"unfreeze_batch", "must run before values that follow from a batch of 1 become constants", unfreeze_batch},
      {"remove_dead", "nodes that no output needs must not count as readers of inner values", remove_dead,
       PassKind::cleanup},
      {"fold_constants", "patterns need axes and epsilons as constants, however the exporter computes them",
       fold_constants, PassKind::cleanup},
      {"simplify_shapes", "shapes that follow from the inputs become constants, which the next passes can read",
       simplify_shapes},
      {"fold_shapes", "values computed from shapes that have just become constants are constants too", fold_constants},
      {"lower_to_native",
       "rewrites nodes that TensorRT refuses, once sizes are constants; the next passes simplify the new nodes",
       lower_to_native},
      {"widen_bytes", "must run after the lowerings, which write u8 for the nodes that they replace", widen_bytes},
      {"drop_default_modes", "must run after every pass that adds a GridSample with the mode names of its opset",
       drop_default_modes},
      {"guard_grid_sample",
       "runs only if requested, for example by the target release of TensorRT: GridSample with Gather",
       guard_grid_sample, PassKind::guard},
      {"lower_volume_sampling",
       "runs only if requested, for example by a target release of TensorRT before 11.2: GridSample of volumes with "
       "Gather",
       lower_volume_sampling, PassKind::guard},
      {"remove_identities", "nodes that copy their input must not separate the nodes of a pattern", remove_identities,
       PassKind::cleanup},
      {"move_transposes",
       "networks with channels last become networks with channels first, before patterns are matched", move_transposes,
       PassKind::cleanup},
      {"cancel_transposes", "adjacent Transposes cancel, and nodes that copy their input are removed",
       remove_identities, PassKind::cleanup},
      {"merge_transposes",
       "patterns with several layers on one tensor must find one tensor, not transposed copies of it",
       merge_transposes},
      {"fold_transposes", "the Transposes that remain before fully connected layers become an order of their weights",
       fold_transposes},
      {"unwrap_pads", "finds a Pad that is one layer of TensorRT, before movements of several nodes are matched",
       unwrap_pads},
      {"lower_drop_ins", "plugins of other libraries become operators, before layers or plugins are chosen for them",
       lower_drop_ins},
  };
}

/// Returns the passes that run after the operator fusions, in order.
std::vector<Pass> passes_after_fusions() {
  return {
      {"fold_pads", "must run after the padding operators are matched, which need the Pad nodes", fold_pads},
      {"merge_equal_nodes", "must run after the patterns, which need inner values with a single reader",
       merge_equal_nodes},
      {"remove_empty_checks",
       "two tensors selected by equal nodes have a provably equal size once the nodes are merged", remove_empty_checks},
      {"remove_leftovers",
       "Transposes that fusions add around an operator cancel the Transposes that were there before", remove_identities,
       PassKind::cleanup},
      {"choose_plugins", "runs last, when every operator is known: chooses a native layer or a plugin, with the reason",
       choose_plugins},
  };
}

std::vector<Pass> all_passes() {
  std::vector<Pass> all = passes_before_fusions();
  // operator_fusion.hpp has the fusions of operators. The folder of each operator names the fusion after which its own
  // must run.
  for (std::vector<Pass>& more : std::array{ordered_passes(operator_fusions()), passes_after_fusions()}) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  for (Pass& pass : all) pass.runs_in_every_round = true;
  return all;
}

/// Returns the pipeline with each of `options.extra_passes` inserted after the pass that it names. Throws Error
/// (internal) if there is no pass of that name.
std::vector<Pass> passes_to_run(const ConvertOptions& options) {
  std::vector<Pass> all(pipeline().begin(), pipeline().end());
  // The last one first, so that those with one place keep their order.
  for (auto each = options.extra_passes.rbegin(); each != options.extra_passes.rend(); ++each) {
    const Pass& extra = *each;
    auto place = all.begin();
    if (!extra.after.empty()) {
      place = std::find_if(all.begin(), all.end(), [&](const Pass& pass) { return pass.name == extra.after; });
      if (place == all.end()) {
        throw Error(Error::Kind::internal,
                    fmt::format("pass {}: there is no pass {} to run after", extra.name, extra.after));
      }
      ++place;
    }
    all.insert(place, extra);
  }
  return all;
}

void check_names(const std::vector<std::string>& names, const std::vector<Pass>& known) {
  for (const std::string& name : names) {
    const bool found = std::any_of(known.begin(), known.end(), [&](const Pass& pass) { return pass.name == name; });
    if (found) continue;
    std::vector<std::string_view> allowed;
    for (const Pass& pass : known) allowed.push_back(pass.name);
    throw Error(fmt::format("there is no pass '{}'; the passes are {}", name, fmt::join(allowed, ", ")));
  }
}

bool is_enabled(const Pass& pass, const ConvertOptions& options) {
  const auto lists = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), pass.name) != names.end();
  };
  if (pass.kind == PassKind::guard) return (lists(options.only) || lists(options.guards)) && !lists(options.without);
  return pass.is_required || ((options.only.empty() || lists(options.only)) && !lists(options.without));
}

/// Infers the shapes of the model from its inputs with the shapes in `options`. Shapes for inputs that a pass has
/// renamed or removed are ignored.
void infer(onnx::Model& model, const ConvertOptions& options) {
  std::map<std::string, Shape, std::less<>> shapes = options.input_shapes;
  std::erase_if(shapes, [&](const auto& entry) {
    const onnx::Value* value = model.graph().find_local(entry.first);
    return value == nullptr || !value->is_input;
  });
  if (shapes.empty()) {
    infer_shapes(model);
  } else {
    infer_shapes(model, shapes);
  }
}

/// The maximum number of rounds. If passes still rewrite the model after that, two passes revert each other.
constexpr int most_rounds = 16;

/// Runs a pass, infers shapes again if it rewrote anything, adds its time and number of rewrites to the report, and
/// returns whether it rewrote anything.
bool run_pass(const Pass& pass, Rewriter& rewriter, RewriteReport& report) {
  const auto start = std::chrono::steady_clock::now();
  const std::size_t before = report.rewrites.size();
  rewriter.begin(std::string(pass.name));
  pass.run(rewriter);
  const std::size_t made = report.rewrites.size() - before;
  if (made != 0) {
    rewriter.end();
    infer(rewriter.model(), rewriter.options());
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  auto summary = std::find_if(report.passes.begin(), report.passes.end(),
                              [&](const PassSummary& each) { return each.pass == pass.name; });
  if (summary == report.passes.end()) {
    summary = report.passes.insert(
        summary,
        {.pass = std::string(pass.name), .why = std::string(pass.why), .is_cleanup = pass.kind == PassKind::cleanup});
  }
  summary->rewrites += made;
  summary->seconds += spent.count();
  return made != 0;
}

RewriteReport run_passes(const runtime::Engine& engine, onnx::Model& model, const ConvertOptions& options) {
  const std::vector<Pass> all = passes_to_run(options);
  check_names(options.only, all);
  check_names(options.without, all);
  check_names(options.guards, all);

  RewriteReport report;
  const std::unique_ptr<runtime::Engine> limited = runtime::make_budget_engine(engine, model);
  Rewriter rewriter(*limited, model, options, report);
  infer_and_check_nodes(model, options.input_shapes);
  // An earlier pass may match the result of a later one, so the passes run until none rewrites anything.
  bool goes_on = true;
  for (int round = 0; goes_on && round < most_rounds; ++round) {
    goes_on = false;
    rewriter.begin_round();
    for (const Pass& pass : all) {
      if (!is_enabled(pass, options) || (round > 0 && !pass.runs_in_every_round)) continue;
      const auto done = round == 0 ? static_cast<std::size_t>(&pass - all.data()) : all.size() - 1;
      if (options.progress) options.progress(pass.name, done, all.size());
      goes_on = run_pass(pass, rewriter, report) || goes_on;
    }
  }
  rewriter.finish();
  report.rejections = rejection_warnings(report);
  // Only rules read the layer types of an imported network.
  model.graph().for_each_node([](onnx::Node& node) { node.metadata.erase(std::string(onnx::layer_type_note)); });
  attach_functions(model);
  remove_unused_functions(model);
  return report;
}

}  // namespace

std::span<const Pass> pipeline() {
  static const std::vector<Pass> passes = all_passes();
  return passes;
}

RewriteReport convert(const runtime::Engine& engine, onnx::Model& model, const ConvertOptions& options) {
  if (options.prove && !engine.can_run()) {
    throw Error(Error::Kind::missing_tool,
                fmt::format("rewrites are proven by running them, and this build of Graft has no CPU engine\n"
                            "Install it with: make deps build; or skip the proofs: {}",
                            setting_name(Setting::without_proofs)));
  }
  if (!options.prove || options.prove_each) return run_passes(engine, model, options);
  const onnx::Model original = model.clone();  // this does not copy weights, which clones share
  try {
    return run_passes(engine, model, options);
  } catch (const NotAlike&) {
    model = original.clone();
    ConvertOptions each = options;
    each.prove_each = true;
    return run_passes(engine, model, each);
  }
}

}  // namespace graft::passes
