// Binds graft.cut, which cuts a network in two halves.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graft/toolkit/cut.hpp"
#include "graft/toolkit/present.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/cpu_engines.hpp"
#include "python/fields.hpp"
#include "python/judges.hpp"
#include "python/results.hpp"
#include "python/shape_ranges.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using toolkit::CutFiles;
using toolkit::CutNetwork;
using toolkit::CutResult;
using toolkit::DetectionTail;

std::optional<CutResult> cut(const toolkit::Model& model, const std::string& judge, double max_seconds,
                             const PyShapeRanges& shapes, const std::vector<std::string>& targets,
                             const std::vector<std::filesystem::path>& plugin_libraries, const std::string& tensorrt,
                             bool plugins, bool verify, const std::string& engine, const nb::object& progress,
                             const std::optional<toolkit::CancelToken>& cancel) {
  toolkit::CutOptions options;
  options.inspect.judge = judge_of(judge);
  options.inspect.budget.max_seconds = max_seconds;
  options.inspect.shapes = ranges_of(shapes);
  options.inspect.targets = targets;
  options.inspect.plugin_libraries = plugin_libraries;
  options.inspect.tensorrt = tensorrt;
  options.plugins = plugins;
  options.verify = verify;
  options.engine = cpu_engine_of(engine);
  return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
    options.watch = watch;
    return toolkit::cut(model, options);
  });
}

std::string describe(const CutResult& result) {
  const std::string tensorrt = count_of(result.tensorrt.nodes, "node") + " in TensorRT";
  const std::string host = count_of(result.host.nodes, "node") + " on the host";
  return "<graft.CutResult " + result.tensorrt_model.source() + ": " +
         (result.tensorrt_is_first ? tensorrt + ", then " + host : host + ", then " + tensorrt) + ", " +
         count_of(result.between.size(), "tensor") + " between>";
}

}  // namespace

void add_cuts(nb::module_& module) {
  nb::class_<CutNetwork>(module, "CutNetwork", "A network in two halves; graft.Session runs it as one.")
      .def_ro("tensorrt", &CutNetwork::tensorrt)
      .def_ro("host", &CutNetwork::host, "The half for ONNX Runtime or another runtime on the host.")
      .def_ro("tensorrt_is_first", &CutNetwork::tensorrt_is_first)
      .def_prop_ro("inputs", &CutNetwork::inputs, "The inputs that a run of both halves needs.")
      .def_ro("outputs", &CutNetwork::outputs,
              "Names of the outputs of the whole network; each is an output of one half.")
      .def("__repr__", [](const CutNetwork& network) {
        return "<graft.CutNetwork: " + count_of(network.tensorrt.node_count(), "node") + " for TensorRT, " +
               count_of(network.host.node_count(), "node") + " for the host>";
      });
  nb::class_<DetectionTail> tail(module, "DetectionTail", "The post-processing of a detector that runs on the host.");
  add_fields(tail);
  tail.def("__repr__", [](const DetectionTail& found) { return "<detections by " + text_of(found.node) + ">"; });
  nb::class_<CutFiles>(module, "CutFiles", "The files of a network in two halves.")
      .def_ro("network", &CutFiles::network, "The file that names both halves, for example 'detector.cut.json'.")
      .def_ro("tensorrt", &CutFiles::tensorrt)
      .def_ro("host", &CutFiles::host)
      .def("__repr__", [](const CutFiles& files) { return "<" + files.network.string() + ">"; });
  nb::class_<CutResult> result(module, "CutResult", "The result of graft.cut.");
  add_fields(result);
  result.def_ro("model", &CutResult::model, "The model that was cut.")
      .def_prop_ro("network", &CutResult::network)
      .def_ro("verified", &CutResult::verified,
              "The VerifyResult of the halves, run one after the other, compared with the whole network; or None, also "
              "where the outputs are the same and ONNX Runtime refuses the half for the host.")
      .def(
          // It keeps the GIL, because it sets the names of files in the result.
          "save", [](CutResult& result, const std::filesystem::path& file) { return save(result, file); }, "file"_a,
          "Writes the half for TensorRT to `file`, and next to it the other half (.host.onnx) and the file that names "
          "both "
          "(.cut.json), which graft.load reads as one network and graft.load_cut as two halves. Returns CutFiles.");
  add_texts(result, describe,
            "Returns the value of the key `cut` in the JSON of graft convert (docs/schema), as text.");
  add_page(result);
  module.def("cut", cut, "model"_a, nb::kw_only(), "judge"_a, "max_seconds"_a, "shapes"_a, "targets"_a,
             "plugin_libraries"_a, "tensorrt"_a, "plugins"_a, "verify"_a, "engine"_a, "progress"_a.none(),
             "cancel"_a.none());
  module.def("load_cut", toolkit::load_cut, "file"_a, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace graft::python
