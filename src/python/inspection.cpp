// Binds graft.inspect and its results: how TensorRT runs each node.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <string>
#include <vector>

#include "graft/toolkit/inspect.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/fields.hpp"
#include "python/judges.hpp"
#include "python/results.hpp"
#include "python/shape_ranges.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using report::Fusion;
using report::NetworkCost;
using report::NodeCost;
using toolkit::FailingPart;
using toolkit::InspectReport;
using toolkit::Judge;
using toolkit::NodeGroup;
using toolkit::NodeSupport;
using toolkit::ProbeSummary;

InspectReport inspect(const toolkit::Model& model, const std::string& judge, bool convert, const std::string& release,
                      double trial_seconds, std::size_t max_builds, double max_seconds, const PyShapeRanges& shapes,
                      const std::vector<std::string>& targets,
                      const std::vector<std::filesystem::path>& plugin_libraries, const std::string& tensorrt,
                      bool plugin_override, const std::filesystem::path& reduce, const nb::object& progress,
                      const std::optional<toolkit::CancelToken>& cancel) {
  toolkit::InspectOptions options{
      .judge = judge_of(judge),
      .convert = convert,
      .release = release,
      .budget = {.trial_seconds = trial_seconds, .max_builds = max_builds, .max_seconds = max_seconds},
      .shapes = ranges_of(shapes),
      .targets = targets,
      .plugin_libraries = plugin_libraries,
      .tensorrt = tensorrt,
      .plugin_override = plugin_override,
      .reduce = reduce,
      .watch = {}};
  return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
    options.watch = watch;
    return toolkit::inspect(model, options);
  });
}

std::string describe(const InspectReport& result) {
  std::string text = "<graft.InspectResult " + result.model.source() + ": ";
  text += !result.runs() ? "not known whether it runs" : *result.runs() ? "runs" : "does not run";
  for (const auto& [support, count] : result.counts()) text += ", " + std::to_string(count) + " " + support;
  return text + ">";
}

}  // namespace

Judge judge_of(const std::string& word) {
  if (word == "auto") return Judge::automatic;
  if (word == "rule") return Judge::rule;
  if (word == "parser") return Judge::parser;
  if (word == "builder") return Judge::builder;
  throw Error("judge: found " + word + "; allowed are auto, rule, parser and builder");
}

void add_inspection(nb::module_& module) {
  nb::class_<NodeCost> node_cost(module, "NodeCost", "The work and the memory of a node in one run.");
  add_fields(node_cost);
  nb::class_<NetworkCost> network_cost(module, "NetworkCost", "The work and the weights of a network in one run.");
  add_fields(network_cost);
  nb::class_<NodeSupport> support(module, "NodeSupport", "How a node runs in TensorRT.");
  add_fields(support);
  support.def("__repr__", [](const NodeSupport& node) {
    return "<" + text_of(node.node) + ": " + to_string(node.support) + (node.reason.empty() ? "" : ", " + node.reason) +
           ">";
  });
  nb::class_<Fusion> fusion(module, "Fusion", "Nodes of the inspected model that `graft convert` replaces together.");
  add_fields(fusion);
  fusion.def("__repr__", [](const Fusion& nodes) {
    return "<" + count_of(nodes.nodes.size(), "node") + ": " + nodes.replacement + ">";
  });
  nb::class_<NodeGroup> group(module, "NodeGroup", "Nodes that reports show together.");
  add_fields(group);
  group.def("__repr__", [](const NodeGroup& nodes) { return "<" + count_of(nodes.nodes.size(), "node") + ">"; });
  nb::class_<FailingPart> part(module, "FailingPart", "The smallest part of the model that reproduces a failure.");
  add_fields(part);
  part.def("__repr__", [](const FailingPart& failing) {
    return "<" + count_of(failing.nodes.size(), "node") + " in " + failing.file.string() + ": " +
           to_string(failing.support) + ">";
  });
  nb::class_<ProbeSummary> probe(module, "ProbeSummary", "The runs of TensorRT.");
  add_fields(probe);
  probe.def("__repr__", [](const ProbeSummary& summary) {
    return "<" + summary.title() + ": " + count_of(summary.parses(), "parse") + ", " +
           count_of(summary.builds(), "build") + ">";
  });
  nb::class_<InspectReport> result(module, "InspectResult", "The result of graft.inspect.");
  add_fields(result);
  add_texts(result, describe);
  add_page(result);
  module.def("releases", toolkit::releases);
  module.def("inspect", inspect, "model"_a, nb::kw_only(), "judge"_a, "convert"_a, "release"_a, "trial_seconds"_a,
             "max_builds"_a, "max_seconds"_a, "shapes"_a, "targets"_a, "plugin_libraries"_a, "tensorrt"_a,
             "plugin_override"_a, "reduce"_a, "progress"_a.none(), "cancel"_a.none());
}

}  // namespace graft::python
