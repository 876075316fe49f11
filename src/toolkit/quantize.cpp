// `quantize`: checks the options, and converts the reports into a QuantizeResult.
#include "graft/toolkit/quantize.hpp"

#include <fmt/format.h>

#include <utility>

#include "graft/error.hpp"
#include "quant/calibrate/calibration_cache.hpp"
#include "toolkit/access.hpp"
#include "toolkit/checks.hpp"
#include "toolkit/precisions.hpp"
#include "toolkit/quantize.hpp"
#include "toolkit/tensors.hpp"
#include "toolkit/verify_options.hpp"

namespace graft::toolkit {
namespace {

constexpr auto data_name = "QuantizeOptions::data";

std::vector<OutputQuality> qualities_of(const std::vector<verify::OutputFigures>& outputs) {
  std::vector<OutputQuality> qualities;
  for (const verify::OutputFigures& output : outputs) {
    qualities.push_back({.name = output.name,
                         .snr_db = output.snr_db,
                         .largest_error = output.largest_error,
                         .rows = output.rows,
                         .same_top = output.same_top});
  }
  return qualities;
}

/// Throws Error for an option that is set and belongs to other precisions.
void refuse(bool is_given, const char* option) {
  if (is_given) throw Error(fmt::format("QuantizeOptions::{}: this option does not apply to this precision", option));
}

void refuse_int8_options(const Int8Options& options) {
  const Int8Options none;
  refuse(!options.data.empty(), "int8.data");
  refuse(!options.recipe.empty(), "int8.recipe");
  refuse(options.samples != none.samples, "int8.samples");
  refuse(!options.cache.empty(), "int8.cache");
  refuse(!options.state.empty(), "int8.state");
  refuse(options.improve.equalize || options.improve.smooth || options.improve.round || options.improve.bias,
         "int8.improve");
  refuse(options.rest.has_value(), "int8.rest");
  refuse(static_cast<bool>(options.metric), "int8.metric");
  refuse(options.max_drop.has_value(), "int8.max_drop");
  refuse(options.calibration.has_value(), "int8.calibration");
  refuse(options.percentile != none.percentile, "int8.percentile");
  refuse(options.judged != none.judged, "int8.judged");
}

void check(const Int8Options& options) {
  const double percentile = options.percentile;
  check_number(percentile > 0 && percentile <= 100, "QuantizeOptions::int8.percentile", percentile,
               "a number above 0, at most 100");
  if (options.calibration.value_or(ThresholdMethod::percentile) != ThresholdMethod::percentile &&
      percentile != Int8Options().percentile) {
    throw Error(
        "QuantizeOptions::int8.percentile: only ThresholdMethod::percentile has a percentile, and int8.calibration is "
        "another method");
  }
  check_from_0("QuantizeOptions::int8.samples", static_cast<double>(options.samples));
  check_positive("QuantizeOptions::int8.judged", static_cast<double>(options.judged));
  check_from_0("QuantizeOptions::int8.max_drop", options.max_drop);
}

QuantizeResult to_float(const Model& model, const QuantizeOptions& options) {
  refuse_int8_options(options.int8);
  if (has_data(options) && !options.shapes.empty()) {
    throw Error(
        "QuantizeOptions::shapes: these are shapes of synthetic inputs, which data replaces\nGive only one of the two");
  }
  quant::ChooseOptions inner;
  inner.precision = precision_of(options.precision);
  inner.typed_io = options.typed_io;
  inner.keep = options.keep;
  inner.only = options.only;
  inner.limit_db = options.limit_db;
  inner.shapes = {options.shapes.begin(), options.shapes.end()};
  TypesReport report = quantize_types(model, inner, to_internal(options.data, options.data_views, data_name), data_name,
                                      options.watch, options.engine);
  const quant::ChosenTypes& chosen = report.chosen;
  QuantizeResult result;
  for (const quant::ChosenNode& node : chosen.nodes) {
    const bool is_kept = node.node.type == quant::NodeType::kept;
    result.nodes.push_back({.node = node.node.node,
                            .type = type_name(node.node, inner.precision),
                            .reason = is_kept ? node.node.reason : std::string()});
  }
  result.outputs = qualities_of(chosen.outputs);
  result.notes = chosen.notes;
  result.met = report.met();
  if (report.check.report) result.verified = report.check.report->verdict();
  result.model = ModelAccess::make(chosen.typed.model.clone());
  result.details = std::make_shared<const Quantization>(Quantization{
      .model = model, .precision = inner.precision, .report = std::move(report), .has_data = has_data(options)});
  return result;
}

graft::quant::Int8Options int8_options(const QuantizeOptions& options) {
  const Int8Options& given = options.int8;
  check(given);
  graft::quant::Int8Options inner;
  inner.improve = {.equalize = given.improve.equalize,
                   .smooth = given.improve.smooth,
                   .round = given.improve.round,
                   .bias = given.improve.bias};
  if (options.precision == Precision::f8) inner.type = quant::EightBits::f8;
  inner.thresholds = {.method = given.calibration.value_or(quant::usual_method(inner.type)),
                      .percentile = given.percentile};
  inner.keep = options.keep;
  inner.only = options.only;
  if (!given.cache.empty()) inner.cache = quant::read_calibration_cache(given.cache);
  inner.state = given.state;
  inner.limit_db = options.limit_db;
  if (given.rest == Precision::int8 || given.rest == Precision::f8) {
    throw Error("QuantizeOptions::int8.rest: found a type of 8 bits; allowed are f16, bf16 and no type");
  }
  if (given.rest) inner.rest = precision_of(*given.rest);
  inner.max_drop = given.max_drop;
  if (given.metric) {
    inner.metric = [&metric = given.metric](const graft::onnx::Model& tried) {
      return metric(ModelAccess::make(tried.clone()));
    };
  }
  inner.judged = given.judged;
  return inner;
}

QuantizeResult to_eight_bits(const Model& model, const QuantizeOptions& options) {
  refuse(!options.shapes.empty(), "shapes");
  refuse(options.typed_io, "typed_io");
  const bool has_any_data = has_data(options) || !options.int8.data.empty();
  if (!has_any_data && options.int8.cache.empty()) {
    throw Error(
        fmt::format("QuantizeOptions::data: {} needs the ranges of real inputs, and synthetic inputs have other "
                    "ranges\nGive a hundred or more inputs from real use, or a calibration cache",
                    options.precision == Precision::f8 ? "f8" : "int8"));
  }
  if (!has_any_data && (options.int8.metric || options.int8.max_drop || options.limit_db)) {
    throw Error("QuantizeOptions::data: a limit, a metric and max_drop need data in addition to the cache");
  }
  if (has_data(options) && !options.int8.data.empty()) {
    throw Error("QuantizeOptions::int8.data: QuantizeOptions::data has tensors too\nGive only one of the two");
  }
  const Samples samples{.tensors = to_internal(options.data, options.data_views, data_name),
                        .path = options.int8.data,
                        .recipe = read_recipe(options.int8.recipe, options.int8.data, "QuantizeOptions::int8.recipe"),
                        .limit = options.int8.samples,
                        .name = data_name};
  graft::quant::Int8Options inner = int8_options(options);
  Int8Report report = quantize_int8(model, inner, samples, options.watch, options.engine);
  const quant::ChosenInt8& chosen = report.chosen;
  QuantizeResult result;
  for (const quant::Int8Node& node : chosen.plan.nodes) {
    const bool in_the_rest = chosen.is_in_the_rest(node);
    result.nodes.push_back(
        {.node = node.node,
         .type = std::string(in_the_rest ? to_string(chosen.rest_precision) : to_string(node.kind, chosen.plan.type)),
         .reason = node.kind == quant::Int8Kind::kept ? node.reason : std::string()});
  }
  result.outputs = qualities_of(chosen.outputs);
  result.metric_f32 = chosen.metric_f32;
  result.metric_int8 = chosen.metric_int8;
  result.notes = chosen.notes;
  result.met = report.met();
  if (report.check.report) result.verified = report.check.report->verdict();
  result.model = ModelAccess::make(chosen.placed.model.clone());
  inner.metric = {};
  result.details = std::make_shared<const Quantization>(Quantization{.model = model,
                                                                     .precision = graft::verify::Precision::int8,
                                                                     .report = std::move(report),
                                                                     .int8 = std::move(inner),
                                                                     .has_data = has_any_data});
  return result;
}

}  // namespace

QuantizeResult quantize(const Model& model, const QuantizeOptions& options) {
  check_from_0("QuantizeOptions::limit_db", options.limit_db);
  const bool is_float = options.precision == Precision::f16 || options.precision == Precision::bf16;
  return is_float ? to_float(model, options) : to_eight_bits(model, options);
}

std::size_t write_calibration_cache(const Model& model, const std::filesystem::path& file) {
  const quant::CalibrationCache cache = quant::cache_of(model_of(model));
  graft::quant::write_calibration_cache(file, cache);
  return cache.entries.size();
}

}  // namespace graft::toolkit
