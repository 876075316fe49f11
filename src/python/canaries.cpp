// Binds graft.canary, which writes a folder with which a user finds the nodes that their TensorRT computes wrongly.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graft/toolkit/canary.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/fields.hpp"
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
                    const std::vector<std::string>& data_files, const std::filesystem::path& recipe, std::size_t seeds,
                    const toolkit::Shapes& shapes, const std::vector<std::filesystem::path>& plugin_libraries,
                    const nb::object& progress, const std::optional<toolkit::CancelToken>& cancel) {
  toolkit::CanaryOptions options{.data = copies_of(data),
                                 .data_files = {.sources = data_files, .recipe = recipe},
                                 .seeds = seeds,
                                 .shapes = shapes,
                                 .plugin_libraries = plugin_libraries,
                                 .watch = {}};
  return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
    options.watch = watch;
    return toolkit::write_canary(model, folder, options);
  });
}

std::string compared_text(const CanaryResult& result) {
  return count_of(result.tensors.size(), "tensor") + " to compare in each of " + count_of(result.runs, "run") + ", " +
         std::to_string(result.output_count()) + " of them outputs";
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
  nb::class_<CanaryTensor> tensor(module, "CanaryTensor", "A tensor that the canary compares.");
  add_fields(tensor);
  tensor.def("__repr__", [](const CanaryTensor& compared) {
    return "<'" + compared.tensor.name + "' by " + text_of(compared.node) + ": " + std::to_string(compared.samples) +
           " of " + std::to_string(compared.elements) + " elements>";
  });
  nb::class_<CanaryOmission> omission(module, "CanaryOmission", "A tensor that the canary does not compare.");
  add_fields(omission);
  omission.def("__repr__",
               [](const CanaryOmission& left_out) { return "<'" + left_out.tensor + "': " + left_out.why + ">"; });
  nb::class_<CanaryResult> result(module, "CanaryResult", "The folder that graft.canary wrote.");
  add_fields(result);
  add_texts(result, describe);
  result.def("_repr_html_", [](const CanaryResult& written) { return table_of(rows_of(written)); });
  module.def("canary", canary, "model"_a, "folder"_a, nb::kw_only(), "data"_a, "data_files"_a, "recipe"_a, "seeds"_a,
             "shapes"_a, "plugin_libraries"_a, "progress"_a.none(), "cancel"_a.none());
}

}  // namespace graft::python
