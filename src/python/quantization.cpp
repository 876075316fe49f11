// graft.quantize, with a metric that is a Python function.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graft/toolkit/quantize.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/cpu_engines.hpp"
#include "python/fields.hpp"
#include "python/parts.hpp"
#include "python/precisions.hpp"
#include "python/results.hpp"
#include "python/tensors.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using report::OutputFigures;
using report::QuantizedNode;
using report::QuantizeReport;
using toolkit::QuantizeOptions;

toolkit::ThresholdMethod calibration_of(const std::string& word) {
  if (const auto method = report::find_threshold_method(word)) return *method;
  throw Error("calibration: found " + word + "; allowed are percentile, entropy, minmax and mse");
}

toolkit::Improvements improvements_of(const std::vector<std::string>& words) {
  toolkit::Improvements improve;
  const std::map<std::string, bool*> known{
      {"equalize", &improve.equalize}, {"smooth", &improve.smooth}, {"round", &improve.round}, {"bias", &improve.bias}};
  for (const std::string& word : words) {
    const auto found = known.find(word);
    if (found == known.end()) {
      throw Error("improve: found " + word + "; allowed are equalize, smooth, round and bias");
    }
    *found->second = true;
  }
  return improve;
}

/// Returns the metric of a model. Throws what the Python function raises, and ValueError for a value that is not
/// finite. The caller holds the GIL.
double measured(const nb::handle& metric, const toolkit::Model& model) {
  const double value = PyFloat_AsDouble(metric(model).ptr());
  if (PyErr_Occurred() != nullptr) nb::raise_python_error();
  if (!std::isfinite(value)) {
    const std::string text = "the metric has to be a finite number, and is " + std::to_string(value);
    throw nb::value_error(text.c_str());
  }
  return value;
}

QuantizeReport quantize(const toolkit::Model& model, const std::string& precision, const ArraysIn& data,
                        const std::vector<std::string>& data_files, const toolkit::Shapes& shapes,
                        const std::vector<std::string>& keep, const std::vector<std::string>& only, bool typed_io,
                        std::optional<double> limit_db, const std::filesystem::path& recipe, const std::string& labels,
                        std::int64_t samples, const std::optional<std::string>& calibration,
                        std::optional<double> percentile, const std::filesystem::path& cache,
                        const std::filesystem::path& state, const std::vector<std::string>& improve,
                        const std::optional<std::string>& rest, const nb::object& metric,
                        std::optional<double> max_drop, const std::vector<std::string>& judge_outputs,
                        std::optional<std::int64_t> judged, const std::string& engine, const nb::object& parts,
                        const nb::object& progress, const std::optional<toolkit::CancelToken>& cancel) {
  QuantizeOptions options{.precision = precision_of("precision", precision),
                          .data = {},
                          .data_views = views_of(data),
                          .data_files = {.sources = data_files, .recipe = recipe, .labels = labels},
                          .shapes = shapes,
                          .keep = keep,
                          .only = only,
                          .typed_io = typed_io,
                          .limit_db = limit_db,
                          .int8 = {.samples = samples,
                                   .calibration = {},
                                   .percentile = percentile,
                                   .cache = cache,
                                   .state = state,
                                   .improve = improvements_of(improve),
                                   .rest = {},
                                   .metric = {},
                                   .max_drop = max_drop,
                                   .judge_outputs = judge_outputs,
                                   .judged = judged},
                          .engine = cpu_engine_of(engine),
                          .watch = {}};
  if (calibration) options.int8.calibration = calibration_of(*calibration);
  if (rest) options.int8.rest = precision_of("rest", *rest);
  return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& caller) {
    options.watch = watch;
    if (!metric.is_none()) {
      options.int8.metric = [&](const toolkit::Model& tried) {
        double value = 0;
        caller.run([&] { value = measured(metric, tried); });
        return value;
      };
    }
    if (!parts.is_none()) {
      options.int8.parts = [&](const toolkit::CalibrationWork& work) {
        return start_parts(caller,
                           [&] { return parts(work.model, work.tensors, work.samples.begin, work.samples.end); });
      };
    }
    return toolkit::quantize(model, options);
  });
}

nb::bytes calibrate_part(const toolkit::Model& model, const std::vector<std::string>& tensors, std::int64_t begin,
                         std::int64_t end, const std::string& precision, const ArraysIn& data,
                         const std::vector<std::string>& data_files, const std::filesystem::path& recipe,
                         std::int64_t samples, const std::string& engine, int threads) {
  QuantizeOptions options{.precision = precision_of("precision", precision),
                          .data_views = views_of(data),
                          .data_files = {.sources = data_files, .recipe = recipe},
                          .int8 = {.samples = samples},
                          .engine = cpu_engine_of(engine)};
  const toolkit::CalibrationWork part{
      .model = model, .tensors = tensors, .samples = {.begin = begin, .end = end}, .threads = threads};
  return part_of(run_watched(nb::none(), std::nullopt, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
    options.watch = watch;
    return toolkit::calibrate_part(part, options);
  }));
}

std::string describe(const QuantizeReport& result) {
  std::string text = "<graft.QuantizeResult " + result.model.source() + ":";
  const auto counts = result.counts();
  for (const auto& [type, count] : counts) text += " " + count_of(count, "node") + " " + type + ",";
  if (counts.empty()) text += " no node has a narrower type,";
  text += result.met() ? " limits met" : " limits not met";
  if (!result.notes.empty()) text += ", " + count_of(result.notes.size(), "note");
  return text + ">";
}

}  // namespace

void add_quantization(nb::module_& module) {
  nb::class_<QuantizedNode> quantized(module, "QuantizedNode", "The type that a node has in the result.");
  add_fields(quantized);
  quantized.def("__repr__", [](const QuantizedNode& node) {
    const std::string reason = node.reason();
    return "<" + text_of(node.node) + ": " + node.type + (reason.empty() ? "" : ", " + reason) + ">";
  });
  nb::class_<OutputFigures> quality(module, "OutputQuality",
                                    "The difference of an output from that of the f32 model on the CPU.");
  add_fields(quality);
  quality.def("__repr__", [](const OutputFigures& output) {
    const std::string snr = output.snr_db ? std::to_string(*output.snr_db) + " dB" : "nothing differs";
    return "<output '" + output.name + "': " + snr + ">";
  });
  nb::class_<QuantizeReport> result(module, "QuantizeResult", "The result of graft.quantize.");
  result.def_ro("model", &QuantizeReport::model, "The typed model.");
  add_fields(result);
  add_texts(result, describe);
  add_page(result);
  module.def("quantize", quantize, "model"_a, nb::kw_only(), "precision"_a, "data"_a, "data_files"_a, "shapes"_a,
             "keep"_a, "only"_a, "typed_io"_a, "limit_db"_a.none(), "recipe"_a, "labels"_a, "samples"_a,
             "calibration"_a, "percentile"_a.none(), "cache"_a, "state"_a, "improve"_a, "rest"_a.none(),
             "metric"_a.none(), "max_drop"_a.none(), "judge_outputs"_a, "judged"_a.none(), "engine"_a, "parts"_a.none(),
             "progress"_a.none(), "cancel"_a.none());
  module.def("calibrate_part", calibrate_part, "model"_a, nb::kw_only(), "tensors"_a, "begin"_a, "end"_a, "precision"_a,
             "data"_a, "data_files"_a, "recipe"_a, "samples"_a, "engine"_a, "threads"_a);
  module.def("write_calibration_cache", toolkit::write_calibration_cache, "model"_a, "file"_a);
}

}  // namespace graft::python
