// Binds graft.convert and its results: rewrites, warnings and checks.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <string>
#include <vector>

#include "graft/toolkit/convert.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/cpu_engines.hpp"
#include "python/fields.hpp"
#include "python/results.hpp"
#include "python/shape_ranges.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using toolkit::ConvertReport;
using toolkit::OperatorChoice;
using toolkit::Rewrite;

toolkit::Plugins plugins_of(const std::string& word) {
  if (word == "auto") return toolkit::Plugins::automatic;
  if (word == "always") return toolkit::Plugins::always;
  if (word == "never") return toolkit::Plugins::never;
  throw Error("plugins: found " + word + "; allowed are auto, always and never");
}

report::Quantized quantized_of(const std::string& word) {
  if (word == "exact") return report::Quantized::exact;
  if (word == "symmetric") return report::Quantized::symmetric;
  throw Error("quantized: found " + word + "; allowed are exact and symmetric");
}

ConvertReport convert(const toolkit::Model& model, const std::string& plugins, const std::vector<std::string>& only,
                      const std::vector<std::string>& without, const std::string& release,
                      const std::filesystem::path& rules, std::int64_t unroll, const std::string& quantized, bool prove,
                      bool prove_each, bool functions, const std::string& engine, bool check, double max_seconds,
                      const PyShapeRanges& shapes, const std::vector<std::string>& targets,
                      const std::vector<std::filesystem::path>& plugin_libraries, const std::string& tensorrt,
                      const nb::object& progress, const std::optional<toolkit::CancelToken>& cancel) {
  toolkit::ConvertOptions options{.plugins = plugins_of(plugins),
                                  .only = only,
                                  .without = without,
                                  .release = release,
                                  .rules = rules,
                                  .unroll = unroll,
                                  .quantized = quantized_of(quantized),
                                  .prove = prove,
                                  .prove_each = prove_each,
                                  .functions = functions,
                                  .engine = cpu_engine_of(engine),
                                  .check = check,
                                  .inspect = {},
                                  .watch = {}};
  options.inspect.budget.max_seconds = max_seconds;
  options.inspect.shapes = ranges_of(shapes);
  options.inspect.targets = targets;
  options.inspect.plugin_libraries = plugin_libraries;
  options.inspect.tensorrt = tensorrt;
  return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
    options.watch = watch;
    return toolkit::convert(model, options);
  });
}

std::string describe(const ConvertReport& result) {
  return "<graft.ConvertResult " + result.model.source() + ": " + count_of(result.rewrites.size(), "rewrite") + ", " +
         std::to_string(result.rejected.size()) + " rejected, " + count_of(result.proofs_run, "proof") + ", " +
         count_of(result.model.node_count(), "node") + ">";
}

}  // namespace

void add_conversion(nb::module_& module) {
  nb::class_<Rewrite> rewrite(module, "Rewrite",
                              "A rewrite that was applied, or that was rejected because its proof failed.");
  add_fields(rewrite);
  rewrite.def("__repr__", [](const Rewrite& made) {
    return "<rewrite by " + made.pass + ": " + count_of(made.nodes.size(), "node") + " -> " + made.replacement + ">";
  });
  nb::class_<OperatorChoice> choice(module, "OperatorChoice", "How TensorRT runs a node of one of Graft's operators.");
  add_fields(choice);
  choice.def("__repr__", [](const OperatorChoice& made) {
    return "<" + text_of(made.node) + ": " + made.op + " as " + to_string(made.kind) + ">";
  });
  nb::class_<ConvertReport> result(module, "ConvertResult", "The result of graft.convert.");
  add_fields(result);
  add_texts(result, describe);
  add_page(result);
  module.def("convert", convert, "model"_a, nb::kw_only(), "plugins"_a, "only"_a, "without"_a, "release"_a, "rules"_a,
             "unroll"_a, "quantized"_a, "prove"_a, "prove_each"_a, "functions"_a, "engine"_a, "check"_a,
             "max_seconds"_a, "shapes"_a, "targets"_a, "plugin_libraries"_a, "tensorrt"_a, "progress"_a.none(),
             "cancel"_a.none());
  module.def("pass_names", toolkit::pass_names,
             "Returns the names of the passes of graft.convert in the order in which they run.");
}

}  // namespace graft::python
