// Binds graft.canary, which writes a folder with which a user finds the nodes that their TensorRT computes wrongly.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graft/toolkit/canary.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/results.hpp"
#include "python/tensors.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using toolkit::CanaryOmission;
using toolkit::CanaryResult;
using toolkit::CanaryTensor;

CanaryResult canary(const toolkit::Model& model, const std::filesystem::path& folder, const ArraysIn& data,
                    std::size_t seeds, const toolkit::Shapes& shapes,
                    const std::vector<std::filesystem::path>& plugin_libraries, const nb::object& progress,
                    const std::optional<toolkit::CancelToken>& cancel) {
  toolkit::CanaryOptions options{
      .data = copies_of(data), .seeds = seeds, .shapes = shapes, .plugin_libraries = plugin_libraries, .watch = {}};
  return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
    options.watch = watch;
    return toolkit::write_canary(model, folder, options);
  });
}

std::string compared_text(const CanaryResult& result) {
  const auto outputs = std::count_if(result.tensors.begin(), result.tensors.end(),
                                     [](const CanaryTensor& tensor) { return tensor.is_output; });
  return count_of(result.tensors.size(), "tensor") + " to compare in each of " + count_of(result.runs, "run") + ", " +
         std::to_string(outputs) + " of them outputs";
}

std::string describe(const CanaryResult& result) {
  return "<graft.CanaryResult " + result.folder.string() + ": " + compared_text(result) + ", " +
         count_of(result.left_out.size(), "tensor") + " left out>";
}

std::vector<std::pair<std::string, std::string>> rows_of(const CanaryResult& result) {
  std::vector<std::pair<std::string, std::string>> rows{{"folder", result.folder.string()},
                                                        {"compared", compared_text(result)}};
  for (const CanaryOmission& omission : result.left_out) {
    rows.emplace_back("left out", "'" + omission.tensor + "': " + omission.why);
  }
  rows.emplace_back("next", "python3 run_canary.py, in the folder, on the machine with the GPU");
  return rows;
}

}  // namespace

void add_canaries(nb::module_& module) {
  nb::class_<CanaryTensor>(module, "CanaryTensor", "A tensor that the canary compares.")
      .def_ro("tensor", &CanaryTensor::tensor)
      .def_ro("node", &CanaryTensor::node, "The node that computes the tensor.")
      .def_ro("is_output", &CanaryTensor::is_output)
      .def_ro("elements", &CanaryTensor::elements)
      .def_ro("samples", &CanaryTensor::samples, "The number of elements that are compared, evenly distributed.")
      .def("__repr__", [](const CanaryTensor& tensor) {
        return "<'" + tensor.tensor.name + "' by " + text_of(tensor.node) + ": " + std::to_string(tensor.samples) +
               " of " + std::to_string(tensor.elements) + " elements>";
      });
  nb::class_<CanaryOmission>(module, "CanaryOmission", "A tensor that the canary does not compare.")
      .def_ro("tensor", &CanaryOmission::tensor)
      .def_ro("node", &CanaryOmission::node)
      .def_ro("is_output", &CanaryOmission::is_output,
              "Whether the tensor is an output of the model; the model in the folder does not return it.")
      .def_ro("why", &CanaryOmission::why)
      .def("__repr__",
           [](const CanaryOmission& omission) { return "<'" + omission.tensor + "': " + omission.why + ">"; });
  nb::class_<CanaryResult> result(module, "CanaryResult", "The folder that graft.canary wrote.");
  result.def_ro("folder", &CanaryResult::folder)
      .def_ro("files", &CanaryResult::files, "Names of the files in the folder.")
      .def_ro("tensors", &CanaryResult::tensors, "The compared tensors, in the order of computation.")
      .def_ro("left_out", &CanaryResult::left_out)
      .def_ro("runs", &CanaryResult::runs);
  add_texts(result, describe);
  result.def("_repr_html_", [](const CanaryResult& written) { return table_of(rows_of(written)); });
  module.def("canary", canary, "model"_a, "folder"_a, nb::kw_only(), "data"_a, "seeds"_a, "shapes"_a,
             "plugin_libraries"_a, "progress"_a.none(), "cancel"_a.none());
}

}  // namespace graft::python
