// Binds graft.build, which builds a TensorRT engine.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graft/toolkit/build.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/fields.hpp"
#include "python/results.hpp"
#include "python/shape_ranges.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using toolkit::BuildOptions;
using toolkit::BuildReport;
using toolkit::PluginLayer;

toolkit::MemoryLimits limits_of(const std::map<std::string, std::uint64_t>& memory) {
  toolkit::MemoryLimits limits;
  const std::map<std::string, std::optional<std::uint64_t>*> known{
      {"workspace", &limits.workspace},           {"tactic_shared_memory", &limits.tactic_shared_memory},
      {"tactic_dram", &limits.tactic_dram},       {"dla_sram", &limits.dla_sram},
      {"dla_local_dram", &limits.dla_local_dram}, {"dla_global_dram", &limits.dla_global_dram}};
  for (const auto& [pool, bytes] : memory) {
    const auto found = known.find(pool);
    if (found == known.end()) {
      std::string text = "memory: found the pool " + pool + "; allowed are";
      const char* separator = " ";
      for (const auto& [name, limit] : known) text.append(std::exchange(separator, ", ")).append(name);
      throw Error(text);
    }
    *found->second = bytes;
  }
  return limits;
}

std::optional<toolkit::ProfilingVerbosity> verbosity_of(const std::optional<std::string>& word) {
  if (!word) return {};
  if (*word == "none") return toolkit::ProfilingVerbosity::none;
  if (*word == "layer_names_only") return toolkit::ProfilingVerbosity::layer_names_only;
  if (*word == "detailed") return toolkit::ProfilingVerbosity::detailed;
  throw Error("verbosity: found " + *word + "; allowed are none, layer_names_only and detailed");
}

BuildReport build(const toolkit::Model& model, const std::filesystem::path& engine,
                  const std::vector<std::string>& targets, const PyShapeRanges& shapes,
                  const std::vector<PyShapeRanges>& profiles, const std::map<std::string, std::uint64_t>& memory,
                  std::optional<int> optimization_level,
                  const std::map<std::string, std::pair<std::string, std::vector<std::string>>>& formats,
                  const std::filesystem::path& timing_cache, bool tf32, bool version_compatible,
                  bool exclude_lean_runtime, bool embed_plugins, bool refit, bool strip_weights, bool weight_streaming,
                  std::optional<int> dla_core, bool gpu_fallback, std::optional<int> device, bool plugin_override,
                  const std::optional<std::string>& verbosity, std::optional<double> time_limit, bool plugins,
                  const std::vector<std::filesystem::path>& plugin_libraries, const std::string& tensorrt,
                  const nb::object& progress, const std::optional<toolkit::CancelToken>& cancel) {
  BuildOptions options;
  options.targets = targets;
  options.shapes = ranges_of(shapes);
  for (const PyShapeRanges& profile : profiles) options.profiles.push_back(ranges_of(profile));
  options.memory = limits_of(memory);
  options.optimization_level = optimization_level;
  for (const auto& [port, format] : formats) {
    options.formats.emplace(port, toolkit::PortFormat{.type = format.first, .formats = format.second});
  }
  options.timing_cache = timing_cache;
  options.tf32 = tf32;
  options.version_compatible = version_compatible;
  options.exclude_lean_runtime = exclude_lean_runtime;
  options.embed_plugins = embed_plugins;
  options.refit = refit;
  options.strip_weights = strip_weights;
  options.weight_streaming = weight_streaming;
  if (dla_core) options.dla = {.core = *dla_core, .gpu_fallback = gpu_fallback};
  options.device = device;
  options.plugin_override = plugin_override;
  options.verbosity = verbosity_of(verbosity);
  options.time_limit = time_limit;
  options.plugins = plugins;
  options.plugin_libraries = plugin_libraries;
  options.tensorrt = tensorrt;
  return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
    options.watch = watch;
    return toolkit::build(model, engine, options);
  });
}

std::string seconds_of(const BuildReport& report) {
  const std::string text = std::to_string(report.seconds);
  return text.substr(0, text.find('.') + 2) + " s";
}

std::string describe(const BuildReport& report) {
  std::string text = "<graft.BuildResult: " + count_of(report.layer_count(), "layer") + ", " +
                     count_of(report.plugins().size(), "plugin") + ", " + count_of(report.bytes, "byte") + ", " +
                     report.tensorrt_title() + ", " + seconds_of(report);
  const std::size_t warnings = report.warnings().size();
  if (warnings != 0) text += ", " + count_of(warnings, "warning");
  return text + ">";
}

std::vector<std::pair<std::string, std::string>> rows_of(const BuildReport& report) {
  std::vector<std::pair<std::string, std::string>> rows{
      {"engine", count_of(report.bytes, "byte") + ", " + count_of(report.layer_count(), "layer")},
      {"built by", report.tensorrt_title() + " in " + seconds_of(report)}};
  for (const std::string& target : report.targets) rows.emplace_back("for", target);
  for (const PluginLayer& plugin : report.plugins()) rows.emplace_back(plugin.node, plugin.plugin + ": " + plugin.why);
  for (const std::string& warning : report.warnings()) rows.emplace_back("warning", warning);
  return rows;
}

}  // namespace

void add_engines(nb::module_& module) {
  nb::class_<PluginLayer> layer(module, "PluginLayer", "A layer of the engine that is a plugin.");
  add_fields(layer);
  layer.def("__repr__",
            [](const PluginLayer& plugin) { return "<plugin " + plugin.plugin + " of '" + plugin.node + "'>"; });
  nb::class_<BuildReport> report(module, "BuildResult", "The result of graft.build.");
  add_fields(report);
  add_texts(report, describe);
  report.def("_repr_html_", [](const BuildReport& built) { return table_of(rows_of(built)); });
  module.def("build", build, "model"_a, "engine"_a, nb::kw_only(), "targets"_a, "shapes"_a, "profiles"_a, "memory"_a,
             "optimization_level"_a.none(), "formats"_a, "timing_cache"_a, "tf32"_a, "version_compatible"_a,
             "exclude_lean_runtime"_a, "embed_plugins"_a, "refit"_a, "strip_weights"_a, "weight_streaming"_a,
             "dla_core"_a.none(), "gpu_fallback"_a, "device"_a.none(), "plugin_override"_a, "verbosity"_a.none(),
             "time_limit"_a.none(), "plugins"_a, "plugin_libraries"_a, "tensorrt"_a, "progress"_a.none(),
             "cancel"_a.none());
  module.def("set_python", toolkit::set_python, "interpreter"_a);
}

}  // namespace graft::python
