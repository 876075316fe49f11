// Binds graft.auto, which makes an engine from a network in one call.
#include "graft/toolkit/auto.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/cpu_engines.hpp"
#include "python/fields.hpp"
#include "python/precisions.hpp"
#include "python/results.hpp"
#include "python/shape_ranges.hpp"
#include "python/tensors.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using report::AutoReport;
using report::AutoStep;
using report::EngineCheck;

AutoReport run_auto(const std::filesystem::path& model, const std::filesystem::path& engine,
                    const std::filesystem::path& weights, const toolkit::Shapes& input_shapes,
                    const std::vector<std::string>& outputs, const std::filesystem::path& rules,
                    const std::optional<std::string>& precision, const ArraysIn& data,
                    const std::vector<std::string>& data_files, const std::filesystem::path& recipe,
                    const std::string& labels, std::int64_t samples, const std::vector<std::string>& keep,
                    std::optional<double> limit_db, const PyShapeRanges& shapes,
                    const std::vector<std::string>& targets, bool plugins,
                    const std::vector<std::filesystem::path>& plugin_libraries, const std::string& tensorrt,
                    const std::filesystem::path& folder, const std::string& cpu_engine, const nb::object& progress,
                    const std::optional<toolkit::CancelToken>& cancel) {
  toolkit::AutoOptions options;
  options.import = {.weights = weights, .shapes = input_shapes, .outputs = outputs, .watch = {}};
  options.convert.plugins = plugins ? toolkit::Plugins::automatic : toolkit::Plugins::never;
  options.convert.rules = rules;
  options.convert.engine = cpu_engine_of(cpu_engine);
  options.verify.engine = options.convert.engine;
  if (precision) {
    toolkit::QuantizeOptions& quantize = options.quantize.emplace();
    quantize.precision = precision_of("precision", *precision);
    quantize.keep = keep;
    quantize.limit_db = limit_db;
    quantize.int8.samples = samples;
    quantize.engine = options.convert.engine;
  } else if (samples != 0 || !keep.empty() || limit_db) {
    throw Error("samples, keep and limit_db: these arguments need a precision");
  }
  options.build.shapes = ranges_of(shapes);
  options.build.targets = targets;
  options.build.plugins = plugins;
  options.build.plugin_libraries = plugin_libraries;
  options.build.tensorrt = tensorrt;
  options.data = copies_of(data);
  options.data_files = {.sources = data_files, .recipe = recipe, .labels = labels};
  options.folder = folder;
  return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
    options.watch = watch;
    AutoReport report = toolkit::run_auto(model, engine, options);
    toolkit::save(report);
    return report;
  });
}

std::string describe(const AutoReport& report) {
  std::string text = "<graft.AutoResult " + report.model.string() + ":";
  for (const AutoStep& step : report.steps) text += " " + step.name + " " + std::string(to_string(step.state)) + ",";
  return text + (report.succeeded() ? " every check passed>" : report.build ? " a check failed>" : " no engine>");
}

}  // namespace

void add_auto(nb::module_& module) {
  nb::class_<AutoStep> step(module, "AutoStep", "A step of graft.auto.");
  add_fields(step);
  step.def("__repr__", [](const AutoStep& one) {
    return "<" + one.name + ": " + std::string(to_string(one.state)) + (one.why.empty() ? "" : ", " + one.why) + ">";
  });
  nb::class_<EngineCheck> check(module, "EngineCheck", "A check of the engine that graft.auto built.");
  add_fields(check);
  check.def("__repr__", [](const EngineCheck& one) { return "<" + one.name + ": " + one.found + ">"; });
  nb::class_<AutoReport> result(module, "AutoResult", "The result of graft.auto.");
  add_fields(result);
  add_texts(result, describe);
  add_page(result);
  module.def("auto", run_auto, "model"_a, "engine"_a, nb::kw_only(), "weights"_a, "input_shapes"_a, "outputs"_a,
             "rules"_a, "precision"_a.none(), "data"_a, "data_files"_a, "recipe"_a, "labels"_a, "samples"_a, "keep"_a,
             "limit_db"_a.none(), "shapes"_a, "targets"_a, "plugins"_a, "plugin_libraries"_a, "tensorrt"_a, "folder"_a,
             "cpu_engine"_a, "progress"_a.none(), "cancel"_a.none());
}

}  // namespace graft::python
