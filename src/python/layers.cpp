// Binds graft.verify_layers, which finds the first node where two models differ.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "graft/toolkit/verify_layers.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/comparisons.hpp"
#include "python/precisions.hpp"
#include "python/results.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using toolkit::ComparedTensor;
using toolkit::Divergence;
using toolkit::Failure;
using toolkit::LayersResult;

LayersResult verify_layers(const toolkit::Model& reference, const toolkit::Model& candidate,
                           const std::optional<std::string>& emulated, const ArraysIn& data, std::size_t seeds,
                           const toolkit::Shapes& shapes, const PyRanges& ranges, std::optional<double> relative,
                           std::optional<double> absolute, std::optional<double> snr_db, bool own_kernels,
                           const std::string& engine, const nb::object& progress,
                           const std::optional<toolkit::CancelToken>& cancel) {
  toolkit::VerifyOptions options =
      verify_options(data, seeds, shapes, ranges, relative, absolute, snr_db, own_kernels, engine);
  std::optional<toolkit::Precision> precision;
  if (emulated) precision = precision_of("emulated", *emulated);
  return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
    options.watch = watch;
    return toolkit::verify_layers(reference, candidate, options, precision);
  });
}

std::string describe(const LayersResult& result) {
  std::string text = std::string("<graft.LayersResult: outputs ") + to_string(result.verdict) + ", " +
                     count_of(result.tensors.size(), "tensor");
  if (result.failure) return text + ", the candidate does not run>";
  if (!result.first) return text + ", none diverges>";
  return text + ", first divergence at '" + result.tensors[result.first->tensor].candidate.name +
         "': " + result.first->why + ">";
}

}  // namespace

void add_layers(nb::module_& module) {
  nb::class_<ComparedTensor>(module, "ComparedTensor",
                             "A tensor of the reference and the corresponding tensor of the candidate.")
      .def_ro("reference", &ComparedTensor::reference)
      .def_ro("candidate", &ComparedTensor::candidate)
      .def_ro("reference_node", &ComparedTensor::reference_node, "The node of the reference that computes the tensor.")
      .def_ro("candidate_node", &ComparedTensor::candidate_node)
      .def_ro("is_output", &ComparedTensor::is_output, "Whether the tensor is an output of at least one of the models.")
      .def_prop_ro(
          "verdict", [](const ComparedTensor& tensor) { return to_string(tensor.verdict); },
          "'same', 'different' or 'nothing compared'.")
      .def_ro("not_compared", &ComparedTensor::not_compared, "Why the tensor was not compared; empty where it was.")
      .def_ro("mismatched", &ComparedTensor::mismatched,
              "The number of elements outside the tolerance, in the worst run.")
      .def_ro("largest_absolute", &ComparedTensor::largest_absolute,
              "The largest absolute difference, in the worst run.")
      .def_ro("largest_relative", &ComparedTensor::largest_relative)
      .def_ro("snr_db", &ComparedTensor::snr_db, "The signal to noise ratio in dB; None where nothing differs.")
      .def_ro("diagnosis", &ComparedTensor::diagnosis, "The cause of the difference, if it was recognized.")
      .def("__repr__", [](const ComparedTensor& tensor) {
        return "<tensor '" + tensor.candidate.name + "': " + to_string(tensor.verdict) + ">";
      });
  nb::class_<Divergence>(module, "Divergence",
                         "The first tensor, in the order of computation, that the candidate computes wrongly from "
                         "correct inputs.")
      .def_ro("tensor", &Divergence::tensor, "The index in LayersResult.tensors.")
      .def_ro("why", &Divergence::why, "The difference, for example '1.01 times the reference'.")
      .def_ro(
          "reference_nodes", &Divergence::reference_nodes,
          "The nodes between this tensor and earlier tensors that both models have; the last one computes the tensor.")
      .def_ro("candidate_nodes", &Divergence::candidate_nodes)
      .def_ro("differences", &Divergence::differences,
              "The differences between the nodes: operator, attributes, constants. None where a rewrite created other "
              "nodes or a type is emulated.")
      .def_ro("reference", &Divergence::reference, "A model with only these nodes, which reproduces the difference.")
      .def_ro("candidate", &Divergence::candidate)
      .def_prop_ro(
          "inputs",
          [](const Divergence& first) {
            return nb::module_::import_("graft.arrays").attr("unpack")(arrays_of(first.inputs));
          },
          nb::sig("def inputs(self) -> dict[str, numpy.typing.NDArray]"),
          "The inputs of both models, without those whose type is not among the types of arrays.")
      .def("__repr__", [](const Divergence& first) {
        const std::string node = first.candidate_nodes.empty() ? "" : text_of(first.candidate_nodes.back()) + ": ";
        return "<divergence at " + node + first.why + ">";
      });
  nb::class_<Failure>(module, "Failure", "A candidate that does not run.")
      .def_ro("node", &Failure::node,
              "The first node with which the candidate does not run; None where none was found.")
      .def_ro("message", &Failure::message)
      .def_ro("nodes", &Failure::nodes, "The nodes of the smallest part that fails.")
      .def("__repr__", [](const Failure& failure) { return "<failure: " + failure.message + ">"; });
  nb::class_<LayersResult> result(module, "LayersResult", "The result of graft.verify_layers.");
  result
      .def_prop_ro(
          "verdict", [](const LayersResult& found) { return to_string(found.verdict); },
          "The verdict on the outputs. Internal tensors may differ where it is 'same'.")
      .def_ro("tensors", &LayersResult::tensors, "The compared tensors, in the candidate's order of computation.")
      .def_ro("first", &LayersResult::first,
              "The first divergence; None where no tensor is worse than the tensors from which it is computed.")
      .def_ro("nan_begins", &LayersResult::nan_begins,
              "The index of the first tensor with NaN that is computed from tensors without NaN.")
      .def_ro("failure", &LayersResult::failure, "Set where the candidate does not run; `tensors` is empty then.")
      .def_ro("problems", &LayersResult::problems, "Inputs or outputs that one model lacks.")
      .def_ro("runs", &LayersResult::runs)
      .def_ro("ran_in", &LayersResult::ran_in,
              "The CPU engines that ran the models, for example 'ONNX Runtime 1.31.1'.")
      .def_ro("left_out", &LayersResult::left_out, "See VerifyResult.left_out.")
      .def_ro("unreached", &LayersResult::unreached, "See VerifyResult.unreached.")
      .def_ro("without_own_kernels", &LayersResult::without_own_kernels, "See VerifyResult.without_own_kernels.");
  add_texts(result, describe);
  add_page(result);
  module.def("verify_layers", verify_layers, "reference"_a, "candidate"_a, nb::kw_only(), "emulated"_a.none(), "data"_a,
             "seeds"_a, "shapes"_a, "ranges"_a, "relative"_a.none(), "absolute"_a.none(), "snr_db"_a.none(),
             "own_kernels"_a, "engine"_a, "progress"_a.none(), "cancel"_a.none());
}

}  // namespace graft::python
