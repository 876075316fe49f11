// graft.quantize, with a metric that is a Python function.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
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
#include "python/precisions.hpp"
#include "python/results.hpp"
#include "python/tensors.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using toolkit::OutputQuality;
using toolkit::QuantizedNode;
using toolkit::QuantizeOptions;
using toolkit::QuantizeResult;

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

QuantizeResult quantize(const toolkit::Model& model, const std::string& precision, const ArraysIn& data,
                        const std::filesystem::path& data_path, const toolkit::Shapes& shapes,
                        const std::vector<std::string>& keep, const std::vector<std::string>& only, bool typed_io,
                        std::optional<double> limit_db, const std::filesystem::path& recipe, std::int64_t samples,
                        const std::optional<std::string>& calibration, double percentile,
                        const std::filesystem::path& cache, const std::filesystem::path& state,
                        const std::vector<std::string>& improve, const std::optional<std::string>& rest,
                        const nb::object& metric, std::optional<double> max_drop, std::int64_t judged,
                        const std::string& engine, const nb::object& progress,
                        const std::optional<toolkit::CancelToken>& cancel) {
  QuantizeOptions options{.precision = precision_of("precision", precision),
                          .data = {},
                          .data_views = views_of(data),
                          .shapes = shapes,
                          .keep = keep,
                          .only = only,
                          .typed_io = typed_io,
                          .limit_db = limit_db,
                          .int8 = {.data = data_path,
                                   .recipe = recipe,
                                   .samples = samples,
                                   .calibration = {},
                                   .percentile = percentile,
                                   .cache = cache,
                                   .state = state,
                                   .improve = improvements_of(improve),
                                   .rest = {},
                                   .metric = {},
                                   .max_drop = max_drop,
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
    return toolkit::quantize(model, options);
  });
}

std::map<std::string, std::size_t> counts_of(const QuantizeResult& result) {
  std::map<std::string, std::size_t> counts;
  for (const QuantizedNode& node : result.nodes) {
    if (!node.type.empty()) ++counts[node.type];
  }
  return counts;
}

std::string describe(const QuantizeResult& result) {
  std::string text = "<graft.QuantizeResult " + result.model.source() + ":";
  const std::map<std::string, std::size_t> counts = counts_of(result);
  for (const auto& [type, count] : counts) text += " " + count_of(count, "node") + " " + type + ",";
  if (counts.empty()) text += " no node has a narrower type,";
  text += result.met ? " limits met" : " limits not met";
  if (!result.notes.empty()) text += ", " + count_of(result.notes.size(), "note");
  return text + ">";
}

}  // namespace

void add_quantization(nb::module_& module) {
  nb::class_<QuantizedNode>(module, "QuantizedNode", "The type that a node has in the result.")
      .def_ro("node", &QuantizedNode::node)
      .def_ro("type", &QuantizedNode::type,
              "'int8', 'f8', 'f16', 'bf16' or 'f32'; 'f64', which is not converted to f16 or bf16; 'fused': computed "
              "in f32 "
              "inside the kernel of an int8 or f8 node; empty: the node has no such type.")
      .def_ro("reason", &QuantizedNode::reason, "Why the node stays in f32; empty for other nodes.")
      .def("__repr__", [](const QuantizedNode& node) {
        return "<" + text_of(node.node) + ": " + node.type + (node.reason.empty() ? "" : ", " + node.reason) + ">";
      });
  nb::class_<OutputQuality>(module, "OutputQuality",
                            "The difference of an output from that of the f32 model on the CPU.")
      .def_ro("name", &OutputQuality::name)
      .def_ro("snr_db", &OutputQuality::snr_db, "The signal to noise ratio in dB; None where nothing differs.")
      .def_ro("largest_error", &OutputQuality::largest_error)
      .def_ro("rows", &OutputQuality::rows, "The number of rows along the last axis.")
      .def_ro("same_top", &OutputQuality::same_top,
              "The number of rows whose largest element is at the same position as in f32.")
      .def("__repr__", [](const OutputQuality& output) {
        const std::string snr = output.snr_db ? std::to_string(*output.snr_db) + " dB" : "nothing differs";
        return "<output '" + output.name + "': " + snr + ">";
      });
  nb::class_<QuantizeResult> result(module, "QuantizeResult", "The result of graft.quantize.");
  result.def_ro("model", &QuantizeResult::model)
      .def_ro("nodes", &QuantizeResult::nodes)
      .def_prop_ro("counts", counts_of, "The number of nodes with each type.")
      .def_ro("outputs", &QuantizeResult::outputs)
      .def_ro("metric_f32", &QuantizeResult::metric_f32,
              "The metric, or the percentage of rows that agree, of the f32 model; None without data.")
      .def_ro("metric_int8", &QuantizeResult::metric_int8, "The same figure of the result, in int8 or f8.")
      .def_ro("notes", &QuantizeResult::notes)
      .def_prop_ro(
          "verified",
          [](const QuantizeResult& result) {
            return result.verified ? std::optional<std::string>(to_string(*result.verified)) : std::nullopt;
          },
          "The verdict of graft.verify on the given model and the result; None where a metric or max_drop judges the "
          "result, and for a "
          "calibration cache without data.")
      .def_ro("met", &QuantizeResult::met, "Whether every output meets the limits, and `verified` is 'same' or None.");
  add_texts(result, describe);
  add_page(result);
  module.def("quantize", quantize, "model"_a, nb::kw_only(), "precision"_a, "data"_a, "data_path"_a, "shapes"_a,
             "keep"_a, "only"_a, "typed_io"_a, "limit_db"_a.none(), "recipe"_a, "samples"_a, "calibration"_a,
             "percentile"_a, "cache"_a, "state"_a, "improve"_a, "rest"_a.none(), "metric"_a.none(), "max_drop"_a.none(),
             "judged"_a, "engine"_a, "progress"_a.none(), "cancel"_a.none());
  module.def("write_calibration_cache", toolkit::write_calibration_cache, "model"_a, "file"_a);
}

}  // namespace graft::python
