// Quantizes to int8 or f8: reads the calibration data, chooses the nodes, and compares the result with the model.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "graft/error.hpp"
#include "inspect/tensorrt_support.hpp"
#include "quant/calibrate/calibrate.hpp"
#include "quant/calibrate/calibration_cache.hpp"
#include "quant/calibrate/calibration_data.hpp"
#include "quant/search/choose_int8.hpp"
#include "runtime/budget.hpp"
#include "toolkit/access.hpp"
#include "toolkit/quantize.hpp"
#include "toolkit/value_check.hpp"

namespace graft::toolkit {
namespace {

/// Returns whether the data are a folder or have more than 2^24 elements, so that they are not used in a single run.
bool needs_parts(const data::Columns& columns) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 24;
  std::int64_t elements = 0;
  for (const data::Column& column : columns.list) {
    if (column.is_folder) return true;
    for (const data::Array& array : column.arrays) {
      std::int64_t count = 1;
      for (const std::int64_t size : array.dims) {
        if (__builtin_mul_overflow(count, size, &count)) return true;
      }
      elements += std::min(count, most_elements + 1);
    }
  }
  return elements > most_elements;
}

/// Returns the data with which the result is compared. These are all data, as `graft verify --data` uses them, unless
/// needs_parts() is true for them. In that case they are `judged` samples, evenly spread over the samples of the
/// calibration.
std::vector<runtime::TensorMap> data_to_judge_by(const GivenData& given, const onnx::Model& model,
                                                 const quant::CalibrationData& calibration, std::int64_t judged) {
  const data::Inputs inputs = data::inputs_of(model);
  if (!needs_parts(open_columns(given, inputs))) return read_runs(given, inputs).runs;
  std::vector<runtime::TensorMap> data;
  const std::int64_t count = std::clamp<std::int64_t>(judged, 1, calibration.count);
  for (std::int64_t i = 0; i < count; ++i) data.push_back(calibration.sample(i * calibration.count / count));
  return data;
}

/// Returns the options of choose_int8. The result refers to `options`.
graft::quant::Int8Options choice_of(const QuantizeOptions& options) {
  const Int8Options& given = options.int8;
  graft::quant::Int8Options choice;
  choice.type = options.precision == Precision::f8 ? quant::EightBits::f8 : quant::EightBits::int8;
  choice.improve = given.improve;
  choice.calibration = given.calibration;
  choice.percentile = given.percentile;
  choice.keep = options.keep;
  choice.only = options.only;
  if (!given.cache.empty()) choice.cache = quant::read_calibration_cache(given.cache);
  choice.state = given.state;
  if (given.parts) {
    choice.parts = [&parts = given.parts](const quant::CalibrationWork& work) {
      return parts({.model = ModelAccess::make(work.model.clone()), .tensors = work.tensors, .samples = work.samples});
    };
  }
  choice.limit_db = options.limit_db;
  choice.rest = given.rest;
  choice.refusal = inspect::rule_against;
  choice.max_drop = given.max_drop;
  if (given.metric) {
    choice.metric = [&metric = given.metric](const onnx::Model& tried) {
      return metric(ModelAccess::make(tried.clone()));
    };
  }
  choice.judge_outputs = given.judge_outputs;
  if (given.judged) choice.judged = *given.judged;
  return choice;
}

report::AppliedImprovements improvements_of(const quant::ChosenInt8& chosen) {
  const auto number = [](std::size_t count) { return count == 0 ? std::nullopt : std::optional(count); };
  const auto changed = [&](const auto& improved) {
    const auto count = std::ranges::count_if(improved, [](const auto& each) { return each.why_not.empty(); });
    return number(static_cast<std::size_t>(count));
  };
  return {.equalize = number(chosen.equalized.size()),
          .smooth = changed(chosen.smoothed),
          .round = changed(chosen.rounded),
          .bias = number(chosen.corrected.size())};
}

}  // namespace

QuantizeReport quantize_int8(const Model& given, const QuantizeOptions& options, const GivenData& given_data,
                             Work& work) {
  const onnx::Model& model = model_of(given);
  graft::quant::Int8Options choice = choice_of(options);
  choice.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
    work.report_step(what, done, total);
  };
  const quant::CalibrationData data = open_samples(given_data, data::inputs_of(model), options.int8.samples);
  note_data(options, data.notes);
  if (!given_data.files.labels.empty()) {
    GivenData limited = given_data;
    limited.files.samples = options.int8.samples;
    choice.labels = read_labels(limited, data::inputs_of(model));
  }
  const std::unique_ptr<runtime::Engine> limited = data.count == 0
                                                       ? runtime::make_comparison_engine(work.engine(), model, {})
                                                       : runtime::make_limited_engine(work.engine());
  quant::ChosenInt8 chosen = choose_int8(*limited, model, data, choice);
  QuantizeReport report;
  if (data.count != 0 && !choice.metric && !choice.max_drop) {
    graft::verify::VerifyOptions common;
    common.data = data_to_judge_by(given_data, model, data, choice.judged);
    common.snr_db = options.limit_db;
    report.check = check_values(model, chosen.placed.model, common, options.engine, options.watch);
  }
  report.data_notes = data.notes;
  report.nodes = chosen.reported_nodes();
  report.meets_limits = chosen.met;
  report.limit_db = options.limit_db;
  report.improvements = improvements_of(chosen);
  report.notes = std::move(chosen.notes);
  report.outputs = std::move(chosen.outputs);
  report.plain_outputs = std::move(chosen.plain);
  if (!choice.cache) report.method = choice.thresholds().method;
  report.percentile = choice.thresholds().percentile;
  report.samples = chosen.samples;
  report.judged = chosen.judged;
  report.is_metric_accuracy = !choice.labels.empty();
  report.has_own_metric = static_cast<bool>(choice.metric);
  report.max_drop = options.int8.max_drop;
  report.rest = options.int8.rest;
  report.has_rest = chosen.rest.has_value();
  report.metric_outputs = std::move(chosen.metric_outputs);
  report.metric_f32 = chosen.metric_f32;
  report.metric_int8 = chosen.metric_int8;
  report.rounded_tensors = chosen.placed.quantized_tensors;
  report.tensors = std::move(chosen.tensors);
  report.sensitivities = std::move(chosen.sensitivities);
  report.trials = std::move(chosen.trials);
  report.written_trial = chosen.written_trial;
  report.f32_cost = chosen.f32_cost;
  if (!chosen.cache.entries.empty()) report.calibration_cache = format_calibration_cache(chosen.cache);
  report.model = ModelAccess::make(std::move(chosen.placed.model));
  return report;
}

std::string calibrate_int8_part(const CalibrationWork& part, const QuantizeOptions& options,
                                const GivenData& given_data, Work& work) {
  const onnx::Model& model = model_of(part.model);
  const quant::CalibrationData data = open_samples(given_data, data::inputs_of(model), options.int8.samples);
  // The process that needs the part compares the engines, if they are compared.
  const std::unique_ptr<runtime::Engine> engine = runtime::make_limited_engine(work.engine().unchecked());
  quant::CalibrateOptions calibrate;
  calibrate.threads = part.threads;
  calibrate.progress = [&](std::int64_t done, std::int64_t /*total*/) {
    work.report(static_cast<double>(done - part.samples.begin) / static_cast<double>(part.samples.size()),
                "calibrating");
  };
  return quant::calibrate_part(*engine, model, part.tensors, data, part.samples, calibrate);
}

}  // namespace graft::toolkit
