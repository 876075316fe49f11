// Binds Model: reading from files and memory, inputs and outputs, and writing.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <string_view>

#include "graft/toolkit/data.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/operators.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/fields.hpp"
#include "python/results.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using toolkit::Model;
using toolkit::Port;

std::string text_of(const Port& port) {
  std::string text = port.name + " " + port.type;
  if (!port.shape) return text;
  text += '[';
  for (std::size_t i = 0; i < port.shape->size(); ++i) {
    const std::int64_t size = (*port.shape)[i];
    text += (i == 0 ? "" : ", ") + (size < 0 ? "?" : std::to_string(size));
  }
  return text + "]";
}

std::string text_of(const std::vector<Port>& ports) {
  std::string text;
  for (const Port& port : ports) text += (text.empty() ? "" : ", ") + text_of(port);
  return text;
}

std::string text_of(const Model& model) {
  return "<graft.Model " + model.source() + ": " + text_of(model.inputs()) + " -> " + text_of(model.outputs()) + ", " +
         count_of(model.node_count(), "node") + ">";
}

nb::bytes bytes_of(const Model& model) {
  std::string bytes;
  {
    const nb::gil_scoped_release released;
    bytes = model.serialize();
  }
  return nb::bytes(bytes.data(), bytes.size());
}

Model parse(const nb::bytes& onnx, const std::string& name, const toolkit::Shapes& shapes) {
  const std::string_view view(onnx.c_str(), onnx.size());
  const nb::gil_scoped_release released;
  return toolkit::parse(view, name, shapes);
}

}  // namespace

void add_models(nb::module_& module) {
  nb::class_<Port> port(module, "Port", "An input or an output of a model.");
  add_fields(port);
  port.def("__repr__", [](const Port& shown) { return "<" + text_of(shown) + ">"; });
  nb::class_<Model>(
      module, "Model",
      "A network as an ONNX model, whatever format it was read from. A model is immutable: functions return "
      "new models, which share the weights. graft.load reads a model.")
      .def_prop_ro("inputs", &Model::inputs, "The inputs that a run needs, without those that have a default.")
      .def_prop_ro("outputs", &Model::outputs)
      .def_prop_ro("node_count", &Model::node_count, "The number of nodes of the main graph.")
      .def_prop_ro("source", &Model::source, "The file from which the model was read, for messages.")
      .def(
          "save", &Model::save, "file"_a, nb::call_guard<nb::gil_scoped_release>(),
          "Writes an ONNX file, completely or not at all; weights that do not fit into protobuf's 2 GiB are written to "
          "FILE.data next to it. Raises graft.Error for a folder that cannot be written to or a full disk.")
      .def("serialize", bytes_of,
           "Returns the bytes of an ONNX file with all weights inside, for example for onnxruntime.InferenceSession. "
           "Raises "
           "graft.Error where they exceed 2 GiB.")
      .def(
          "to_proto",
          [](const Model& model) {
            return nb::module_::import_("onnx").attr("load_model_from_string")(bytes_of(model));
          },
          nb::sig("def to_proto(self) -> onnx.ModelProto"), "Returns a copy of the model as onnx.ModelProto.")
      .def("__repr__", [](const Model& model) { return text_of(model); });
  module.def(
      "load",
      [](const std::filesystem::path& file, const std::filesystem::path& weights, const toolkit::Shapes& shapes,
         const std::vector<std::string>& outputs, const nb::object& progress,
         const std::optional<toolkit::CancelToken>& cancel) {
        return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
          return toolkit::load(file, {.weights = weights, .shapes = shapes, .outputs = outputs, .watch = watch});
        });
      },
      "file"_a, nb::kw_only(), "weights"_a, "shapes"_a, "outputs"_a, "progress"_a.none(), "cancel"_a.none());
  module.def("load_operators", toolkit::load_operators, "library"_a, nb::call_guard<nb::gil_scoped_release>());
  module.def("loaded_libraries", [] {
    std::vector<std::string> files;
    for (const toolkit::LoadedLibrary& library : toolkit::loaded_libraries()) files.push_back(library.file);
    return files;
  });
  module.def("absolute_sources", toolkit::absolute_sources, "sources"_a);
  module.def("parse", parse, "onnx"_a, nb::kw_only(), "name"_a, "shapes"_a);
}

}  // namespace graft::python
