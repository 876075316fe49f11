// Reads two models so that their inputs have the same shapes, and compares them.
#include "toolkit/compare_models.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "import/read_model.hpp"
#include "onnx/check_operators.hpp"
#include "onnx/faults.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_node.hpp"
#include "runtime/budget.hpp"
#include "toolkit/work.hpp"
#include "verify/compare/compare.hpp"
#include "verify/compare/shared_options.hpp"

namespace graft::toolkit {
namespace {

using InputShapes = std::map<std::string, Shape, std::less<>>;

graft::onnx::Model read(const ModelFiles& files, const InputShapes& shapes) {
  return read_model(files.model, files.weights, {.outputs = files.outputs, .input_shapes = shapes, .origin = nullptr});
}

/// Reads a network without given shapes of its inputs. Returns nothing where it cannot be read without them.
std::optional<graft::onnx::Model> read_without_shapes(const ModelFiles& files) {
  try {
    return read(files, {});
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::bad_input) throw;
    return std::nullopt;
  }
}

/// Reads the reference where no shapes are given. A network of another format is read with the shapes of the candidate,
/// because one of the two often has a fixed batch and the other a dynamic one.
graft::onnx::Model read_reference(const ModelFiles& files, const graft::onnx::Model& candidate) {
  if (!is_imported(files.model)) return read(files, {});
  InputShapes shapes;
  for (const onnx::Value* input : candidate.graph().inputs()) {
    if (input->shape) shapes.emplace(input->name, *input->shape);
  }
  try {
    return read(files, shapes);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::bad_input) throw;
    return read(files, {});  // the inputs differ: this call has the clearer message, or verify reports the inputs
  }
}

InputShapes given_shapes(const graft::verify::VerifyOptions& options) {
  InputShapes shapes;
  for (const auto& [name, sizes] : options.shapes) shapes.emplace(name, Shape(sizes.begin(), sizes.end()));
  if (options.data.empty()) return shapes;
  for (const auto& [name, tensor] : options.data.front()) {
    shapes.emplace(name, Shape(tensor.dims.begin(), tensor.dims.end()));
  }
  return shapes;
}

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

verify::LayerOptions layer_options(const CompareOptions& options) {
  verify::LayerOptions layers;
  verify::copy_shared_options(options.common, layers);
  layers.emulated = options.emulated;
  // The scales are computed from the first run. The second run shows their error on other numbers.
  if (options.emulated == graft::verify::Precision::int8) layers.seeds = 2;
  if (options.seeds) layers.seeds = *options.seeds;
  return layers;
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

/// Adds to the report which engines ran the models, and why, and which operators had no kernels of their own.
void add_engines(report::ComparedModels& report, const Work& work, const CompareOptions& options,
                 const graft::onnx::Model& reference, const graft::onnx::Model& candidate) {
  report.ran_in = work.used().names();
  report.left_out = engines_left_out(work.used(), options.engine, purpose_of(options), {&reference, &candidate});
  report.without_own_kernels = without_own_kernels(candidate, options);
}

}  // namespace

void check_engine(const CompareOptions& options) {
  check_own_kernels(options.engine, options.common.candidate_kernels != runtime::OperatorKernels::functions);
}

void check_tolerances(const graft::verify::VerifyOptions& options) {
  if (!options.snr_db || (!options.relative && !options.absolute)) return;
  throw Error(fmt::format("{} replaces the tolerance of each element\nGive either this or {} and {}",
                          setting_name(Setting::least_snr), setting_name(Setting::relative_tolerance),
                          setting_name(Setting::absolute_tolerance)));
}

ModelPair read_pair(const ModelFiles& reference_files, const ModelFiles& candidate_files, CompareOptions& options) {
  check_tolerances(options.common);
  check_engine(options);
  const InputShapes shapes = given_shapes(options.common);
  if (shapes.empty()) {
    graft::onnx::Model candidate = read(candidate_files, {});
    graft::onnx::Model reference = read_reference(reference_files, candidate);
    return {.reference = std::move(reference), .candidate = std::move(candidate)};
  }
  std::optional<graft::onnx::Model> reference = read_without_shapes(reference_files);
  std::optional<graft::onnx::Model> candidate = read_without_shapes(candidate_files);
  if (!reference || !candidate) {
    return {.reference = read(reference_files, shapes), .candidate = read(candidate_files, shapes)};
  }
  const verify::PlacedShapes placed = place_inputs(*reference, *candidate, options.common, options.names);
  if (is_imported(reference_files.model)) reference = read(reference_files, placed.reference);
  if (is_imported(candidate_files.model)) candidate = read(candidate_files, placed.candidate);
  return {.reference = std::move(*reference), .candidate = std::move(*candidate)};
}

report::VerifyReport compare_outputs(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                                     CompareOptions options, const Watch& watch, const EngineAround& around) {
  Work work(watch, options.engine, purpose_of(options));
  return work.run([&] {
    const std::unique_ptr<runtime::Engine> wrapper = around ? around(work.engine()) : nullptr;
    // These limits come first, so that a narrower limit of the wrapper refuses only what they allow.
    const std::unique_ptr<runtime::Engine> engine =
        limited_engine(wrapper ? *wrapper : work.engine(), reference, options);
    complete(reference, candidate, options);
    if (options.seeds) options.common.seeds = *options.seeds;
    options.common.progress = [&](std::size_t done, std::size_t total) {
      work.report(fraction_of(done, total), fmt::format("run {} of {}", done, total));
    };
    report::VerifyReport report = verify::verify_models(*engine, reference, candidate, options.common);
    add_engines(report, work, options, reference, candidate);
    return report;
  });
}

verify::LayerReport compare_tensors(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                                    CompareOptions options, const Watch& watch) {
  Work work(watch, options.engine, purpose_of(options));
  return work.run([&] {
    const std::unique_ptr<runtime::Engine> engine = limited_engine(work.engine(), reference, options);
    complete(reference, candidate, options);
    verify::LayerOptions layers = layer_options(options);
    layers.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
      work.report_step(what, done, total);
    };
    verify::LayerReport report = compare_layers(*engine, reference, candidate, layers);
    // One run shows where the models differ. The verdict `same` needs as many runs as in compare_outputs; otherwise the
    // two functions could contradict each other.
    if (!options.emulated && report.verdict() == report::Verdict::same) {
      if (options.seeds) options.common.seeds = *options.seeds;
      options.common.progress = [&](std::size_t done, std::size_t total) {
        work.report_step("comparing outputs for other inputs", done, total);
      };
      const report::VerifyReport outputs = verify_models(*engine, reference, candidate, options.common);
      layers.seeds = options.common.seeds;
      if (!outputs.equal()) report = compare_layers(*engine, reference, candidate, layers);
      report.unreached = outputs.unreached;
      report.large_integers = outputs.large_integers;
    }
    add_engines(report, work, options, reference, candidate);
    return report;
  });
}

}  // namespace graft::toolkit
