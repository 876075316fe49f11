// Checks the options of comparisons, and compares two models in the engine of the options.
#include "toolkit/compare_models.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/check_operators.hpp"
#include "onnx/faults.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_node.hpp"
#include "runtime/budget.hpp"
#include "toolkit/checks.hpp"
#include "toolkit/tensors.hpp"
#include "toolkit/work.hpp"
#include "verify/compare/compare.hpp"

namespace graft::toolkit {
namespace {

void complete(const graft::onnx::Model& reference, const graft::onnx::Model& candidate, CompareOptions& options) {
  if (!options.common.data.empty() && !options.common.ranges.empty()) {
    throw Error(fmt::format("{} describes synthetic inputs, which {} replaces\nRemove one of the two",
                            options.names.ranges, options.names.data));
  }
  if (options.common.candidate_kernels != runtime::OperatorKernels::functions) check_has_kernels(candidate);
  complete_inputs(reference, candidate, options.common, options.names);
}

double fraction_of(std::size_t done, std::size_t total) {
  return total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
}

Purpose purpose_of(const CompareOptions& options) {
  return purpose_of_run(options.common.candidate_kernels != runtime::OperatorKernels::functions);
}

/// Returns the engine of a comparison. Inputs that Graft makes have limits of their own, because the caller did not
/// choose their sizes.
std::unique_ptr<runtime::Engine> limited_engine(const runtime::Engine& engine, const graft::onnx::Model& reference,
                                                const CompareOptions& options) {
  return options.common.data.empty() ? runtime::make_comparison_engine(engine, reference, options.common.shapes)
                                     : runtime::make_limited_engine(engine);
}

/// Returns ComparedModels::without_own_kernels.
std::vector<std::string> without_own_kernels(const graft::onnx::Model& candidate, const CompareOptions& options) {
  if (options.common.candidate_kernels == runtime::OperatorKernels::functions) return {};
  bool has_any = false;
  candidate.graph().for_each_node(
      [&](const graft::onnx::Node& node) { has_any = has_any || graft::onnx::find_onnx_operator(node) != nullptr; });
  if (!has_any) return {};
  graft::onnx::Model inferred = candidate.clone();
  infer_around_faults(inferred, [](const graft::onnx::Node&, const Error&) {});  // the comparison reports faults
  std::set<std::string> names;
  std::as_const(inferred).graph().for_each_node([&](const graft::onnx::Node& node) {
    if (graft::onnx::is_adopted_for_tensorrt(node)) names.insert(node.op_type);
  });
  return {names.begin(), names.end()};
}

/// Throws Error for values out of range and for options that exclude each other.
void check(const VerifyOptions& options) {
  const std::string_view relative = setting_name(Setting::relative_tolerance);
  const std::string_view absolute = setting_name(Setting::absolute_tolerance);
  const std::string_view snr = setting_name(Setting::least_snr);
  check_from_0(relative, options.relative);
  check_from_0(absolute, options.absolute);
  check_finite(snr, options.snr_db);
  if (options.snr_db && (options.relative || options.absolute)) {
    throw Error(fmt::format("{} replaces the tolerance of each element\nGive either this or {} and {}", snr, relative,
                            absolute));
  }
  if (options.seeds != 0 && has_data(options)) {
    throw Error(fmt::format("{}: this setting creates synthetic inputs, which {} replaces\nGive only one of the two",
                            setting_name(Setting::synthetic_seeds), setting_name(Setting::verify_data)));
  }
  for (const auto& [name, range] : options.ranges) {
    const std::string option = fmt::format("{}['{}']", setting_name(Setting::synthetic_ranges), name);
    check_finite(option, range.lowest);
    check_finite(option, range.highest);
    if (range.lowest > range.highest) {
      throw Error(fmt::format("{}: found {} to {}; the lowest must not be above the highest", option, range.lowest,
                              range.highest));
    }
  }
  check_own_kernels(options.engine, options.own_kernels);
}

}  // namespace

CompareOptions compare_options(const VerifyOptions& given) {
  check(given);
  CompareOptions options;
  options.names = {.data = std::string(setting_name(Setting::verify_data)),
                   .shapes = std::string(setting_name(Setting::synthetic_shapes)),
                   .ranges = std::string(setting_name(Setting::synthetic_ranges))};
  if (given.seeds != 0) options.seeds = given.seeds;
  options.common.shapes = {given.shapes.begin(), given.shapes.end()};
  if (has_data(given)) options.common.data.push_back(to_internal(given.data, given.data_views, options.names.data));
  for (const auto& [name, range] : given.ranges) {
    options.common.ranges.emplace(name,
                                  verify::InputRange{.lowest = range.lowest, .highest = range.highest, .why = {}});
  }
  options.common.relative = given.relative;
  options.common.absolute = given.absolute;
  options.common.snr_db = given.snr_db;
  if (given.own_kernels) options.common.candidate_kernels = runtime::OperatorKernels::own;
  options.engine = given.engine;
  return options;
}

void run_comparison(const graft::onnx::Model& reference, const graft::onnx::Model& candidate, CompareOptions& options,
                    const Watch& watch, const EngineAround& around, const Comparison& compare) {
  place_inputs(reference, candidate, options.common, options.names);
  Work work(watch, options.engine, purpose_of(options));
  work.run([&] {
    const std::unique_ptr<runtime::Engine> wrapper = around ? around(work.engine()) : nullptr;
    // These limits come first, so that a narrower limit of the wrapper refuses only what they allow.
    const std::unique_ptr<runtime::Engine> engine =
        limited_engine(wrapper ? *wrapper : work.engine(), reference, options);
    complete(reference, candidate, options);
    report::ComparedModels& report = compare(work, *engine);
    report.ran_in = work.used().names();
    report.left_out = engines_left_out(work.used(), options.engine, purpose_of(options), {&reference, &candidate});
    report.without_own_kernels = without_own_kernels(candidate, options);
    return true;
  });
}

report::VerifyReport compare_outputs(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                                     CompareOptions options, const Watch& watch, const EngineAround& around) {
  report::VerifyReport report;
  run_comparison(reference, candidate, options, watch, around,
                 [&](Work& work, const runtime::Engine& engine) -> report::ComparedModels& {
                   if (options.seeds) options.common.seeds = *options.seeds;
                   options.common.progress = [&](std::size_t done, std::size_t total) {
                     work.report(fraction_of(done, total), fmt::format("run {} of {}", done, total));
                   };
                   report = verify::verify_models(engine, reference, candidate, options.common);
                   return report;
                 });
  return report;
}

}  // namespace graft::toolkit
