// Binds graft.inspect and its results: how TensorRT runs each node.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "graft/toolkit/inspect.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/judges.hpp"
#include "python/results.hpp"
#include "python/shape_ranges.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using toolkit::FailingPart;
using toolkit::InspectResult;
using toolkit::Judge;
using toolkit::NodeGroup;
using toolkit::NodeSupport;
using toolkit::ProbeSummary;

const char* name_of(Judge judge) {
  switch (judge) {
    case Judge::parser: return "parser";
    case Judge::builder: return "builder";
    case Judge::automatic:
    case Judge::rule: break;
  }
  return "rule";
}

InspectResult inspect(const toolkit::Model& model, const std::string& judge, bool convert, const std::string& release,
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

std::map<std::string, std::size_t> counts_of(const InspectResult& result) {
  std::map<std::string, std::size_t> counts;
  for (const NodeSupport& node : result.nodes) ++counts[to_string(node.support)];
  return counts;
}

std::string describe(const InspectResult& result) {
  std::string text = "<graft.InspectResult " + result.model.source() + ": ";
  text += !result.runs ? "not known whether it runs" : *result.runs ? "runs" : "does not run";
  for (const auto& [support, count] : counts_of(result)) text += ", " + std::to_string(count) + " " + support;
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
  nb::class_<NodeSupport>(module, "NodeSupport", "How a node runs in TensorRT.")
      .def_ro("node", &NodeSupport::node)
      .def_prop_ro(
          "support", [](const NodeSupport& node) { return to_string(node.support); },
          "'native', 'lowered', 'plugin', 'unknown', 'not asked', 'unsupported', 'refused', 'fails', 'hangs' or "
          "'crashes'.")
      .def_ro("reason", &NodeSupport::reason, "Empty where there is nothing to say.")
      .def_ro("advice", &NodeSupport::advice, "What to do about a node that is not native.")
      .def_prop_ro(
          "judge", [](const NodeSupport& node) { return name_of(node.judge); }, "'rule', 'parser' or 'builder'.")
      .def_ro("tensorrt", &NodeSupport::tensorrt, "TensorRT's own words.")
      .def_ro("plugin", &NodeSupport::plugin, "The plugin that TensorRT makes of it, and whose that is.")
      .def_ro("same_as", &NodeSupport::as, "The same node elsewhere, about which TensorRT was asked in its place.")
      .def("__repr__", [](const NodeSupport& node) {
        return "<" + text_of(node.node) + ": " + to_string(node.support) +
               (node.reason.empty() ? "" : ", " + node.reason) + ">";
      });
  nb::class_<NodeGroup>(module, "NodeGroup", "Nodes of which one thing is said.")
      .def_ro("nodes", &NodeGroup::nodes, "Places in InspectResult.nodes; the first has the reason.")
      .def("__repr__", [](const NodeGroup& group) { return "<" + count_of(group.nodes.size(), "node") + ">"; });
  nb::class_<FailingPart>(module, "FailingPart", "The smallest part of the model that shows one failure.")
      .def_ro("file", &FailingPart::file)
      .def_ro("nodes", &FailingPart::nodes, "They fail together.")
      .def_ro("inside", &FailingPart::inside, "The one in a branch, a body or a function of them that fails.")
      .def_ro("alike", &FailingPart::alike, "Nodes that fail alike.")
      .def_prop_ro("support", [](const FailingPart& part) { return to_string(part.support); })
      .def("__repr__", [](const FailingPart& part) {
        return "<" + count_of(part.nodes.size(), "node") + " in " + part.file.string() + ": " +
               to_string(part.support) + ">";
      });
  nb::class_<ProbeSummary>(module, "ProbeSummary", "What was asked of TensorRT.")
      .def_ro("tensorrt", &ProbeSummary::tensorrt, "'TensorRT-RTX 1.7.1.116'.")
      .def_ro("parses", &ProbeSummary::parses)
      .def_ro("builds", &ProbeSummary::builds)
      .def_ro("seconds", &ProbeSummary::seconds)
      .def_ro("built", &ProbeSummary::built, "The whole model, together: TensorRT runs it.")
      .def_ro("not_built", &ProbeSummary::not_built, "Why it was not, where nothing was found to fail; may be empty.")
      .def_ro("shapes", &ProbeSummary::shapes, "NAME=MIN..OPT..MAX that it was built for.")
      .def_ro("failing_shapes", &ProbeSummary::failing_shapes,
              "Sets of shapes for which the model did not build, each as 'NAME=MIN..OPT..MAX, NAME=MIN..OPT..MAX'.")
      .def_ro("of_converted", &ProbeSummary::of_converted,
              "What was built is what graft.convert makes of the model, which alone TensorRT runs.")
      .def_ro("unanswered", &ProbeSummary::unanswered, "Nodes about which the budget allowed no answer.")
      .def_ro("reduced", &ProbeSummary::reduced)
      .def("__repr__", [](const ProbeSummary& probe) {
        return "<" + probe.tensorrt + ": " + count_of(probe.parses, "parse") + ", " + count_of(probe.builds, "build") +
               ">";
      });
  nb::class_<InspectResult> result(module, "InspectResult", "What graft.inspect found.");
  result.def_ro("model", &InspectResult::model, "That the nodes are of: the converted one where that was asked for.")
      .def_ro("nodes", &InspectResult::nodes, "All of them, those of sub-graphs too.")
      .def_ro("runs", &InspectResult::runs, "Whether TensorRT runs the model; None where that is not known.")
      .def_prop_ro("counts", counts_of, "How many nodes have each support.")
      .def_ro("problems", &InspectResult::problems, "The worst first, of those the largest.")
      .def_ro("others", &InspectResult::others, "They run, and there is a reason to tell; the largest first.")
      .def_ro("plain", &InspectResult::plain, "There is nothing to tell.")
      .def_ro("warnings", &InspectResult::warnings)
      .def_ro("probe", &InspectResult::probe, "Where TensorRT was asked.")
      .def_ro("not_asked", &InspectResult::not_asked, "Why it was not: the rules spoke; empty where it was.");
  add_texts(result, describe);
  add_page(result);
  module.def("releases", toolkit::releases);
  module.def("inspect", inspect, "model"_a, nb::kw_only(), "judge"_a, "convert"_a, "release"_a, "trial_seconds"_a,
             "max_builds"_a, "max_seconds"_a, "shapes"_a, "targets"_a, "plugin_libraries"_a, "tensorrt"_a,
             "plugin_override"_a, "reduce"_a, "progress"_a.none(), "cancel"_a.none());
}

}  // namespace graft::python
