// `quantize`: checks the options, calls the function for the kind of type, and writes the result.
#include "toolkit/quantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/atomic_file.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "graft/toolkit/commands.hpp"
#include "graft/toolkit/files.hpp"
#include "onnx/check_operators.hpp"
#include "onnx/count_nodes.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/shape_inference.hpp"
#include "passes/lowering/refused_forms.hpp"
#include "passes/pipeline.hpp"
#include "quant/calibrate/calibration_cache.hpp"
#include "toolkit/access.hpp"
#include "toolkit/checks.hpp"
#include "toolkit/tensors.hpp"

namespace graft::toolkit {
namespace {

/// Throws Error if `is_given` is true. `option` is an option that does not apply to the precision in `options`; the
/// message names both.
void refuse(bool is_given, Setting option, const QuantizeOptions& options) {
  if (!is_given) return;
  throw Error(fmt::format("{0}: this option does not apply to {1} {2}\nRemove {0}", setting_name(option),
                          setting_name(Setting::quantize_precision), to_string(options.precision)));
}

/// Returns whether the options have tensors in memory as data.
bool has_data(const QuantizeOptions& options) { return !options.data.empty() || !options.data_views.empty(); }

/// Returns whether the options have data, in memory or in files.
bool has_any(const QuantizeOptions& options) { return has_data(options) || !options.data_files.empty(); }

void check_16_bits(const QuantizeOptions& options) {
  const Int8Options& given = options.int8;
  const Int8Options none;
  refuse(given.samples != none.samples, Setting::samples, options);
  refuse(given.percentile.has_value(), Setting::percentile, options);
  refuse(given.calibration.has_value(), Setting::calibration, options);
  refuse(!given.cache.empty(), Setting::cache, options);
  refuse(!given.state.empty(), Setting::calibration_state, options);
  refuse(static_cast<bool>(given.parts), Setting::calibration_parts, options);
  refuse(given.improve.any(), Setting::improve, options);
  refuse(given.rest.has_value(), Setting::rest, options);
  refuse(static_cast<bool>(given.metric), Setting::metric, options);
  refuse(given.max_drop.has_value(), Setting::max_drop, options);
  refuse(!options.data_files.labels.empty(), Setting::labels, options);
  refuse(!given.judge_outputs.empty(), Setting::judge_outputs, options);
  refuse(given.judged.has_value(), Setting::judged, options);
  if (has_any(options) && !options.shapes.empty()) {
    throw Error(
        fmt::format("{0}: this option sets the shape of synthetic inputs, which {1} replaces\nRemove {0} or {1}",
                    setting_name(Setting::quantize_shapes), setting_name(Setting::data)));
  }
}

/// Throws Error in three cases: the options have neither data nor a calibration cache; they have a cache and options
/// that determine scales; or they have a cache, no data, and options that judge the result on data.
void check_scales(const QuantizeOptions& options) {
  const Int8Options& given = options.int8;
  const bool has_any_data = has_any(options);
  const std::string_view data = setting_name(Setting::data);
  const std::string_view cache = setting_name(Setting::cache);
  if (!has_any_data && given.cache.empty()) {
    throw Error(
        fmt::format("{0}: {1} needs the ranges of real inputs, and synthetic inputs have other ranges\nPass a hundred "
                    "or more real inputs with {0}, or a calibration cache with {2}",
                    data, to_string(options.precision), cache));
  }
  if (given.cache.empty()) return;
  for (const auto& [is_given, option] : {std::pair(given.percentile.has_value(), Setting::percentile),
                                         std::pair(given.calibration.has_value(), Setting::calibration),
                                         std::pair(static_cast<bool>(given.parts), Setting::calibration_parts)}) {
    if (!is_given) continue;
    throw Error(fmt::format("{0}: this option does not apply with {1}, which contains the scales\nRemove {0} or {1}",
                            setting_name(option), cache));
  }
  if (has_any_data) return;
  for (const auto& [is_given, option] : {std::pair(static_cast<bool>(given.metric), Setting::metric),
                                         std::pair(given.max_drop.has_value(), Setting::max_drop),
                                         std::pair(options.limit_db.has_value(), Setting::limit_db)}) {
    if (!is_given) continue;
    throw Error(
        fmt::format("{0}: this option needs {1} in addition to {2}, to judge single layers\nAdd {1}, or remove {0}",
                    setting_name(option), data, cache));
  }
}

void check_8_bits(const QuantizeOptions& options) {
  const Int8Options& given = options.int8;
  if (given.metric && !options.data_files.labels.empty()) {
    throw Error(fmt::format("{0}: the accuracy with {0} is the metric, which {1} replaces\nRemove {0} or {1}",
                            setting_name(Setting::labels), setting_name(Setting::metric)));
  }
  refuse(!options.shapes.empty(), Setting::quantize_shapes, options);
  refuse(options.typed_io, Setting::typed_io, options);
  const std::string_view percentile = setting_name(Setting::percentile);
  if (given.percentile) {
    check_number(*given.percentile > 0 && *given.percentile <= 100, percentile, *given.percentile,
                 "a number above 0 and at most 100");
  }
  const ThresholdMethod method = given.calibration.value_or(ThresholdMethod::percentile);
  if (method != ThresholdMethod::percentile && given.percentile) {
    throw Error(fmt::format("{0}: this option does not apply to {1} {2}\nRemove {0}", percentile,
                            setting_name(Setting::calibration), to_string(method)));
  }
  check_from_0(setting_name(Setting::samples), static_cast<double>(given.samples));
  if (given.judged) check_positive(setting_name(Setting::judged), static_cast<double>(*given.judged));
  check_from_0(setting_name(Setting::max_drop), given.max_drop);
  if (given.rest == Precision::int8 || given.rest == Precision::f8) {
    throw Error(fmt::format("{}: found {}; the type must be f16, bf16 or f32", setting_name(Setting::rest),
                            to_string(*given.rest)));
  }
  check_scales(options);
}

/// Returns whether the first dimension of each input is dynamic or 1.
bool has_single_samples(const onnx::Model& model) {
  return std::ranges::all_of(model.graph().inputs(), [](const onnx::Value* input) {
    if (!input->shape || input->shape->empty()) return false;
    const Dim& first = input->shape->front();
    return !first.is_constant() || first.value() == 1;
  });
}

/// Returns the command that repeats the check of the result. Returns an empty string if the check used tensors in
/// memory, which `graft verify` cannot read, or samples of a folder that `graft verify` would not choose.
std::string check_command(const QuantizeReport& report, const QuantizeOptions& options) {
  if (!report.check->can_be_repeated() || has_data(options)) return "";
  VerifyOptions verify;
  verify.data_files = options.data_files;
  const bool has_folder = std::ranges::any_of(options.data_files.sources, [](const std::string& source) {
    return data::is_folder(data::parse_source(source).file);
  });
  if (has_8_bits(options.precision) && has_folder) {
    // `verify --samples` reads the files of the compared samples if each file of the folder is one sample.
    if (options.int8.samples != 0 || !has_single_samples(model_of(report.model)) || !report.check->report) return "";
    verify.data_files.samples = report.judged;
  }
  verify.judge_outputs = options.int8.judge_outputs;
  verify.shapes = options.shapes;
  verify.snr_db = report.check->limit_db;
  return verify_command({.model = report.file}, report.output, verify);
}

/// Writes the files of the options: the calibration cache, and then the model.
void write(QuantizeReport& report, const QuantizeOptions& options) {
  if (const std::filesystem::path& cache = options.int8.write_cache; !cache.empty()) {
    if (report.calibration_cache.empty()) {
      throw Error(
          fmt::format("{0}: no tensor became int8, so there are no scales to write\nRemove {0}; the report of the same "
                      "command without {0} has the reason for each node",
                      setting_name(Setting::written_cache)));
    }
    write_file(cache, report.calibration_cache);
  }
  if (options.output.empty()) return;
  report.external_data = onnx::write_onnx(model_of(report.model), options.output);
  report.output = options.output.string();
  if (report.check) report.check->command = check_command(report, options);
}

std::size_t count_nodes(const onnx::Model& model, bool (*counts)(const onnx::Node&)) {
  std::size_t count = 0;
  model.graph().for_each_node([&](const onnx::Node& node) { count += counts(node) ? 1 : 0; });
  return count;
}

/// Returns whether TensorRT refuses the node because it computes with quantized integers, or is a QuantizeLinear or
/// DequantizeLinear in a form that TensorRT does not support.
bool is_refused(const onnx::Node& node) {
  if (!passes::is_quantized_operator(node)) return false;
  const bool scales = node.is("QuantizeLinear") || node.is("DequantizeLinear");
  return !scales || passes::is_refused_quantization(node);
}

/// Throws Error for a node that TensorRT refuses although the model was converted, with the reason.
void refuse_rest(const onnx::Model& model, const report::RewriteReport& report) {
  model.graph().for_each_node([&](const onnx::Node& node) {
    if (!is_refused(node)) return;
    std::string reason;
    for (const report::NearMiss& miss : report.near_misses) {
      if (miss.node == onnx::ref_of(node)) reason = ": " + miss.reason;
    }
    throw Error(fmt::format(
        "{}: {} is quantized in a form that TensorRT does not take and that cannot be replaced{}\nQuantize the model "
        "before it was quantized, or quantize it to i8 with the zero point 0",
        model.source, onnx::describe(node), reason));
  });
}

/// Replaces the quantized nodes of `given` that TensorRT refuses, as `convert` does, and adds notes on this to `notes`.
/// Returns `given` itself if it has no quantized nodes. Throws Error if such a node cannot be replaced.
Model replace_refused(const Model& given, Work& work, std::vector<std::string>& notes) {
  onnx::Model model = model_of(given).clone();
  onnx::infer_shapes(model);
  const std::size_t quantized = count_nodes(model, passes::is_quantized_operator);
  if (quantized == 0) return given;
  notes.push_back(
      fmt::format("the model is already quantized: {} of its nodes scale or compute with integers", quantized));
  const std::size_t refused = count_nodes(model, is_refused);
  if (refused == 0) return given;
  passes::ConvertOptions options;
  options.prove = false;
  options.only = {"inline_functions", "upgrade_opset",     "remove_dead",      "fold_constants",
                  "lower_to_native",  "remove_identities", "merge_equal_nodes"};
  const report::RewriteReport report = passes::convert(work.engine(), model, options);
  refuse_rest(model, report);
  notes.push_back(fmt::format(
      "TensorRT does not take {} of these nodes; they were replaced by i8 with the zero point 0, by constants, or by "
      "layers in f32 that round alike",
      refused));
  return ModelAccess::make(std::move(model), ModelAccess::frozen_sizes_of(given), ModelAccess::origin_of(given));
}

GivenData given_data(const QuantizeOptions& options) {
  return {.files = options.data_files,
          .tensors = to_internal(options.data, options.data_views, std::string(setting_name(Setting::data)))};
}

/// Quantizes a model. `options` have been checked.
QuantizeReport quantize_checked(const Model& model, const QuantizeOptions& options) {
  Work work(options.watch, options.engine);
  return work.run([&] {
    check_nodes(model_of(model));
    std::vector<std::string> notes;
    const Model taken = replace_refused(model, work, notes);
    const GivenData data = given_data(options);
    QuantizeReport report = has_8_bits(options.precision) ? quantize_int8(taken, options, data, work)
                                                          : quantize_types(taken, options, data, work);
    report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
    report.file = model.source();
    report.weight_bytes_before = onnx::bytes_of_weights(model_of(model));
    report.weight_bytes = onnx::bytes_of_weights(model_of(report.model));
    report.precision = options.precision;
    report.has_data = has_any(options);
    write(report, options);
    return report;
  });
}

}  // namespace

void check_options(const QuantizeOptions& options) {
  check_from_0(setting_name(Setting::limit_db), options.limit_db);
  if (has_8_bits(options.precision)) {
    check_8_bits(options);
  } else {
    check_16_bits(options);
  }
  if (options.precision != Precision::int8 && !options.int8.write_cache.empty()) {
    throw Error(fmt::format(
        "{0}: this option does not apply to {1} {2}\nRemove {0}, because a calibration cache contains scales of int8",
        setting_name(Setting::written_cache), setting_name(Setting::quantize_precision), to_string(options.precision)));
  }
  check_kinds_of_data(options.data_files, has_data(options), Setting::data);
  if (!options.output.empty()) check_writable(options.output);
}

void note_data(const QuantizeOptions& options, const std::vector<std::string>& notes) {
  if (options.on_note) std::ranges::for_each(notes, options.on_note);
}

QuantizeReport quantize(const Model& model, const QuantizeOptions& options) {
  check_options(options);
  return quantize_checked(model, options);
}

QuantizeReport quantize(const std::filesystem::path& file, const QuantizeOptions& options) {
  check_options(options);
  ImportOptions import;
  import.watch.cancel = options.watch.cancel;
  return quantize_checked(load(file, import), options);
}

std::string calibrate_part(const CalibrationWork& part, const QuantizeOptions& options) {
  check_options(options);
  if (!has_8_bits(options.precision)) throw Error("calibrate_part: only int8 and f8 have a calibration");
  Work work(options.watch, options.engine);
  return work.run([&] { return calibrate_int8_part(part, options, given_data(options), work); });
}

std::size_t write_calibration_cache(const Model& model, const std::filesystem::path& file) {
  const quant::CalibrationCache cache = quant::cache_of(model_of(model));
  graft::quant::write_calibration_cache(file, cache);
  return cache.entries.size();
}

}  // namespace graft::toolkit
