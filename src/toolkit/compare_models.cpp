// `verify` and `load_pair`, and the comparison that other functions share. Only `verify` finds warnings about inputs,
// because that takes another compilation of the reference and a run for each input.
#include "toolkit/compare_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
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
#include "toolkit/access.hpp"
#include "toolkit/checks.hpp"
#include "toolkit/data.hpp"
#include "toolkit/read.hpp"
#include "toolkit/tensors.hpp"
#include "toolkit/value_check.hpp"
#include "toolkit/work.hpp"
#include "verify/inputs/given_inputs.hpp"

namespace graft::toolkit {
namespace {

void complete(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
              graft::verify::VerifyOptions& options) {
  if (options.has_data() && !options.ranges.empty()) {
    throw Error(fmt::format("{0} describes synthetic inputs, which {1} replaces\nRemove {0} or {1}",
                            setting_name(Setting::synthetic_ranges), setting_name(options.data_setting)));
  }
  if (options.candidate_kernels != runtime::OperatorKernels::functions) check_has_kernels(candidate);
  complete_inputs(reference, candidate, options);
}

double fraction_of(std::size_t done, std::size_t total) {
  return total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
}

/// Returns an engine that limits the memory and time of a comparison. With data, only the size of tensors is limited;
/// inputs that Graft generates have further limits, because the caller did not choose their sizes.
std::unique_ptr<runtime::Engine> limited_engine(const runtime::Engine& engine, const graft::onnx::Model& reference,
                                                const graft::verify::VerifyOptions& options) {
  return options.has_data() ? runtime::make_limited_engine(engine)
                            : runtime::make_comparison_engine(engine, reference, options.shapes);
}

/// Returns the names of the operators in the candidate that run without Graft's kernels, for
/// ComparedModels::without_own_kernels.
std::vector<std::string> without_own_kernels(const graft::onnx::Model& candidate) {
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
    throw Error(
        fmt::format("{0} replaces the tolerance of each element, which {1} and {2} set\nSet either {0}, or {1} and {2}",
                    snr, relative, absolute));
  }
  const bool has_tensors = !(options.data.empty() && options.data_views.empty());
  if (options.seeds != 0 && (has_tensors || !options.data_files.empty())) {
    throw Error(fmt::format("{0}: this setting creates synthetic inputs, which {1} replaces\nRemove {0} or {1}",
                            setting_name(Setting::synthetic_seeds), setting_name(Setting::verify_data)));
  }
  if (options.parts && !has_tensors && options.data_files.empty()) {
    throw Error(fmt::format("{}: only runs on data are spread, and there are no data\nPass the data with {}",
                            setting_name(Setting::verify_parts), setting_name(Setting::verify_data)));
  }
  if (options.parts && !options.data_files.labels.empty()) {
    throw Error(fmt::format("{0}: the accuracy with {1} is measured in one process\nRemove {0} or {1}",
                            setting_name(Setting::verify_parts), setting_name(Setting::labels)));
  }
  if (options.parts && options.own_kernels) {
    throw Error(fmt::format("{0}: {1} runs in one process\nRemove {0} or {1}", setting_name(Setting::verify_parts),
                            setting_name(Setting::own_kernels)));
  }
  for (const auto& [name, range] : options.ranges) {
    const std::string option = fmt::format("{}['{}']", setting_name(Setting::synthetic_ranges), name);
    check_finite(option, range.lowest);
    check_finite(option, range.highest);
    if (range.lowest > range.highest) {
      throw Error(fmt::format("{}: found {} to {}; the lowest value must not be above the highest value", option,
                              range.lowest, range.highest));
    }
  }
  check_own_kernels(options.engine, options.own_kernels);
}

graft::onnx::Model read(const ModelFiles& files, const InputShapes& shapes) {
  return read_model(files.model, files.weights, {.outputs = files.outputs, .input_shapes = shapes, .origin = nullptr});
}

/// Reads a network, or returns nothing where it cannot be read with these shapes.
std::optional<graft::onnx::Model> try_read(const ModelFiles& files, const InputShapes& shapes) {
  try {
    return read(files, shapes);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::bad_input) throw;
    return std::nullopt;
  }
}

/// Reads the reference of a comparison in which no shapes are given. A network of another format than ONNX is read with
/// the shapes of the candidate's inputs or, if that fails, with the shapes in its file.
graft::onnx::Model read_reference(const ModelFiles& files, const graft::onnx::Model& candidate) {
  if (is_imported(files.model)) {
    InputShapes shapes;
    for (const onnx::Value* input : candidate.graph().inputs()) {
      if (input->shape) shapes.emplace(input->name, *input->shape);
    }
    if (std::optional<graft::onnx::Model> reference = try_read(files, shapes)) return std::move(*reference);
  }
  return read(files, {});  // if the inputs differ, this call throws the clearer message, or verify reports the inputs
}

GivenData given_data(const VerifyOptions& options) {
  const std::string setting(setting_name(Setting::verify_data));
  return {.files = options.data_files,
          .tensors = to_internal(options.data, options.data_views, setting),
          .setting = Setting::verify_data};
}

/// Returns, by input name, the shapes that the options set and the shapes of the caller's data. Data without an input
/// name are left out.
InputShapes given_shapes(const graft::verify::VerifyOptions& options, const GivenData& data) {
  InputShapes shapes;
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& sizes) {
    shapes.emplace(name, Shape(sizes.begin(), sizes.end()));
  };
  for (const auto& [name, sizes] : options.shapes) add(name, sizes);
  for (const auto& [name, sizes] : data::named_shapes(data.files.sources)) add(name, sizes);
  for (const auto& [name, tensor] : data.tensors) {
    if (!name.empty()) add(name, tensor.dims);
  }
  return shapes;
}

/// Returns whether a file or a tensor may contain more samples than one batch of a model with a fixed batch, so that
/// the comparison divides it into more runs than data::open_runs does.
bool must_be_split(const data::Columns& columns) {
  for (const data::Column& column : columns.list) {
    std::set<std::int64_t> batches;
    const auto add = [&](const data::Port& port) {
      if (port.shape && !port.shape->empty() && port.shape->front().is_constant()) {
        batches.insert(port.shape->front().value());
      }
    };
    add(column.input.port);
    if (column.input.candidate) add(*column.input.candidate);
    if (batches.empty()) continue;
    const auto has_more = [&](const data::Array& array) {
      return !array.fit.adds_axis && !array.dims.empty() && array.dims.front() > *batches.begin();
    };
    if (batches.size() > 1 || std::ranges::any_of(column.arrays, has_more)) return true;
  }
  return false;
}

/// Returns, by name, tensors that have the shapes of the first run's inputs but no elements.
runtime::TensorMap first_run(const data::Columns& columns) {
  runtime::TensorMap tensors;
  for (const auto& [name, dims] : data::first_shapes(columns)) tensors[name].dims = dims;
  return tensors;
}

/// Returns the shapes with the first dimension of each input set to the fixed batch of the other model, which runs once
/// for each batch of the data.
InputShapes with_batch_of(const graft::onnx::Model& other, InputShapes shapes) {
  for (const onnx::Value* input : other.graph().inputs()) {
    const auto found = shapes.find(input->name);
    const bool has_both = found != shapes.end() && !found->second.empty() && input->shape && !input->shape->empty();
    if (has_both && input->shape->front().is_constant()) found->second.front() = input->shape->front();
  }
  return shapes;
}

ModelPair pair_of(graft::onnx::Model reference, graft::onnx::Model candidate) {
  return {.reference = ModelAccess::make(std::move(reference)), .candidate = ModelAccess::make(std::move(candidate))};
}

}  // namespace

graft::verify::VerifyOptions engine_options(const VerifyOptions& given) {
  check(given);
  graft::verify::VerifyOptions options{.seeds = given.seeds,
                                       .relative = given.relative,
                                       .absolute = given.absolute,
                                       .snr_db = given.snr_db,
                                       .threads = given.threads,
                                       .across_formats = true,
                                       .may_be_narrower = true,
                                       .finds_unreached = true,
                                       .finds_beyond_rounding = true,
                                       .data_setting = Setting::verify_data};
  options.shapes = {given.shapes.begin(), given.shapes.end()};
  for (const auto& [name, range] : given.ranges) {
    options.ranges.emplace(name, verify::InputRange{.lowest = range.lowest, .highest = range.highest, .why = {}});
  }
  if (given.own_kernels) options.candidate_kernels = runtime::OperatorKernels::own;
  options.parts = given.parts;
  options.judge_outputs = given.judge_outputs;
  return options;
}

std::vector<std::string> read_given_data(const VerifyOptions& given, const graft::onnx::Model& reference,
                                         const graft::onnx::Model& candidate, graft::verify::VerifyOptions& options) {
  const GivenData data = given_data(given);
  const data::Inputs inputs = data::inputs_of(reference, candidate);
  options.labels = read_labels(data, inputs);
  data::Runs read = read_runs(data, inputs);
  options.data = std::move(read.runs);
  return std::move(read.notes);
}

void run_comparison(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                    graft::verify::VerifyOptions& options, CpuEngine choice, const Watch& watch,
                    const EngineAround& around, const Comparison& compare) {
  place_inputs(reference, candidate, options);
  const bool has_own_kernels = options.candidate_kernels != runtime::OperatorKernels::functions;
  const Purpose purpose = purpose_of_run(has_own_kernels);
  Work work(watch, choice, purpose);
  work.run([&] {
    const std::unique_ptr<runtime::Engine> wrapper = around ? around(work.engine()) : nullptr;
    // These limits come first, so that a narrower limit of the wrapper refuses only what they allow.
    const std::unique_ptr<runtime::Engine> engine =
        limited_engine(wrapper ? *wrapper : work.engine(), reference, options);
    complete(reference, candidate, options);
    report::ComparedModels& report = compare(work, *engine);
    report.ran_in = work.used().names();
    report.left_out = engines_left_out(work.used(), choice, purpose, {&reference, &candidate});
    if (has_own_kernels) report.without_own_kernels = without_own_kernels(candidate);
    return true;
  });
}

report::VerifyReport compare_outputs(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                                     graft::verify::VerifyOptions options, CpuEngine choice, const Watch& watch,
                                     const EngineAround& around) {
  report::VerifyReport report;
  run_comparison(reference, candidate, options, choice, watch, around,
                 [&](Work& work, const runtime::Engine& engine) -> report::ComparedModels& {
                   options.progress = [&](const std::string& /*what*/, std::size_t done, std::size_t total) {
                     work.report(fraction_of(done, total), fmt::format("run {} of {}", done, total));
                   };
                   options.checks_definitions = true;
                   report = verify_models(engine, reference, candidate, options);
                   return report;
                 });
  return report;
}

ValueCheck check_values(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                        graft::verify::VerifyOptions options, CpuEngine choice, const Watch& watch, bool is_limited) {
  ValueCheck found;
  found.limit_db = options.snr_db;
  options.across_formats = true;
  options.may_be_narrower = true;
  options.offers_ranges = false;
  try {
    const auto limited = [&](const runtime::Engine& inner) { return runtime::make_budget_engine(inner, reference); };
    found.report =
        compare_outputs(reference, candidate, std::move(options), choice, {.progress = {}, .cancel = watch.cancel},
                        is_limited ? EngineAround(limited) : EngineAround());
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::internal) throw;
    found.failure = error.what();
    found.is_over_budget = dynamic_cast<const runtime::OverBudget*>(&error) != nullptr;
  }
  return found;
}

VerifyResult verify(const Model& reference, const Model& candidate, const VerifyOptions& options) {
  graft::verify::VerifyOptions inner = engine_options(options);
  std::vector<std::string> notes = read_given_data(options, model_of(reference), model_of(candidate), inner);
  VerifyResult result{
      compare_outputs(model_of(reference), model_of(candidate), std::move(inner), options.engine, options.watch),
      candidate};
  result.data_notes = std::move(notes);
  return result;
}

std::string verify_part(const Model& reference, const Model& candidate, SampleRange runs,
                        const VerifyOptions& options) {
  graft::verify::VerifyOptions inner = engine_options(options);
  data::Columns columns = open_columns(given_data(options), data::inputs_of(model_of(reference), model_of(candidate)));
  if (must_be_split(columns)) {
    static_cast<void>(read_given_data(options, model_of(reference), model_of(candidate), inner));
  } else {
    data::Samples data = data::open_runs(std::move(columns));
    inner.data_set = {.count = data.count, .sample = std::move(data.sample)};
  }
  place_inputs(model_of(reference), model_of(candidate), inner);
  Work work(options.watch, options.engine, purpose_of_run(false));
  return work.run([&] {
    const std::unique_ptr<runtime::Engine> engine = limited_engine(work.engine(), model_of(reference), inner);
    complete(model_of(reference), model_of(candidate), inner);
    inner.progress = [&](const std::string& /*what*/, std::size_t done, std::size_t total) {
      work.report(fraction_of(done, total), fmt::format("run {} of {}", done, total));
    };
    return compare_part(*engine, model_of(reference), model_of(candidate), runs, inner);
  });
}

ModelPair load_pair(const ModelFiles& reference_files, const ModelFiles& candidate_files,
                    const VerifyOptions& options) {
  graft::verify::VerifyOptions given = engine_options(options);
  const GivenData data = given_data(options);
  const InputShapes shapes = given_shapes(given, data);
  if (shapes.empty() && data.empty()) {
    graft::onnx::Model candidate = read(candidate_files, {});
    graft::onnx::Model reference = read_reference(reference_files, candidate);
    return pair_of(std::move(reference), std::move(candidate));
  }
  std::optional<graft::onnx::Model> reference = try_read(reference_files, {});
  std::optional<graft::onnx::Model> candidate = try_read(candidate_files, {});
  if (!reference || !candidate) return pair_of(read(reference_files, shapes), read(candidate_files, shapes));
  const bool is_reference_imported = is_imported(reference_files.model);
  const bool is_candidate_imported = is_imported(candidate_files.model);
  if (!data.empty() && (is_reference_imported || is_candidate_imported))
    given.data.push_back(first_run(open_columns(data, data::inputs_of(*reference, *candidate))));
  const verify::PlacedShapes placed = place_shapes(*reference, *candidate, given);
  if (is_reference_imported) {
    reference =
        read(reference_files, is_candidate_imported ? placed.reference : with_batch_of(*candidate, placed.reference));
  }
  if (is_candidate_imported) {
    candidate =
        read(candidate_files, is_reference_imported ? placed.candidate : with_batch_of(*reference, placed.candidate));
  }
  return pair_of(std::move(*reference), std::move(*candidate));
}

}  // namespace graft::toolkit
