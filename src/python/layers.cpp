// Binds graft.verify_layers, which finds the first node where two models differ.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graft/toolkit/verify_layers.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/comparisons.hpp"
#include "python/fields.hpp"
#include "python/precisions.hpp"
#include "python/results.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using report::ComparedLayer;
using report::Difference;
using report::Failure;
using report::LargeConstant;
using report::LayersReport;
using report::RoundingEffect;
using report::TensorRange;
using toolkit::LayersResult;

/// The first divergence, with the models that reproduce it. `reduced` points into the LayersResult from which the
/// object was created.
struct Divergence : report::Divergence {
  const toolkit::ReducedModels* reduced = nullptr;
};

LayersResult verify_layers(const toolkit::Model& reference, const toolkit::Model& candidate,
                           const std::optional<std::string>& emulated, const ArraysIn& data,
                           const std::vector<std::string>& data_files, const std::filesystem::path& recipe,
                           std::int64_t samples, std::size_t seeds, const toolkit::Shapes& shapes,
                           const PyRanges& ranges, std::optional<double> relative, std::optional<double> absolute,
                           std::optional<double> snr_db, bool own_kernels, const std::string& engine,
                           const nb::object& progress, const std::optional<toolkit::CancelToken>& cancel) {
  toolkit::VerifyOptions options = verify_options(data, {data_files, recipe, samples}, seeds, shapes, ranges, relative,
                                                  absolute, snr_db, own_kernels, engine);
  std::optional<report::Precision> precision;
  if (emulated) precision = precision_of("emulated", *emulated);
  return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
    options.watch = watch;
    return toolkit::verify_layers(reference, candidate, options, precision);
  });
}

std::string describe(const LayersResult& result) {
  std::string text = std::string("<graft.LayersResult: outputs ") + to_string(result.verdict()) + ", " +
                     count_of(result.layers.size(), "tensor");
  if (result.failure) return text + ", the candidate does not run>";
  if (!result.first) return text + ", none diverges>";
  return text + ", first divergence at '" + result.first->candidate + "': " + result.first->why + ">";
}

/// Binds a struct of a report whose members are all fields.
template <class Report>
void add_class(nb::module_& module, const char* name, const char* doc) {
  nb::class_<Report> bound(module, name, doc);
  add_fields(bound);
}

void add_divergence(nb::module_& module) {
  nb::class_<Divergence> divergence(module, "Divergence",
                                    "The first tensor, in the order of computation, that the candidate computes "
                                    "wrongly from correct inputs.");
  add_fields(divergence);
  divergence
      .def_prop_ro(
          "reference", [](const Divergence& first) { return first.reduced->reference; },
          "A model with only these nodes of the reference, which reproduces the difference.")
      .def_prop_ro(
          "candidate", [](const Divergence& first) { return first.reduced->candidate; },
          "A model with only these nodes of the candidate.")
      .def_prop_ro(
          "inputs",
          [](const Divergence& first) {
            return nb::module_::import_("graft.arrays").attr("unpack")(arrays_of(first.reduced->inputs));
          },
          nb::sig("def inputs(self) -> dict[str, numpy.typing.NDArray]"),
          "The inputs of both models, without those whose type is not among the types of arrays.")
      .def("__repr__", [](const Divergence& first) {
        const std::string node = first.candidate_nodes.empty() ? "" : text_of(first.candidate_nodes.back()) + ": ";
        return "<divergence at " + node + first.why + ">";
      });
}

}  // namespace

void add_layers(nb::module_& module) {
  add_class<TensorRange>(module, "TensorRange", "The range of a tensor's numbers.");
  add_class<RoundingEffect>(module, "RoundingEffect", "The effect of a type alone on the numbers of a tensor.");
  add_class<LargeConstant>(module, "LargeConstant", "A constant with numbers that become infinite in a narrow type.");
  add_class<Difference>(module, "Difference", "The result of comparing two tensors.");
  nb::class_<ComparedLayer> layer(module, "ComparedTensor",
                                  "A tensor of the reference and the corresponding tensor of the candidate.");
  add_fields(layer);
  layer.def("__repr__", [](const ComparedLayer& tensor) {
    return "<tensor '" + tensor.candidate.name + "': " + to_string(tensor.verdict()) + ">";
  });
  add_divergence(module);
  nb::class_<Failure> failure(module, "Failure", "A candidate that does not run.");
  add_fields(failure);
  failure.def("__repr__", [](const Failure& failed) { return "<failure: " + failed.message + ">"; });
  add_class<LayersReport>(module, "LayersReport", "The comparison of all tensors that two models have in common.");
  nb::class_<LayersResult, LayersReport> result(module, "LayersResult", "The result of graft.verify_layers.");
  result.def_prop_ro(
      "first",
      [](const LayersResult& found) -> std::optional<Divergence> {
        if (!found.first) return std::nullopt;
        return Divergence{*found.first, &*found.reduced};
      },
      nb::keep_alive<0, 1>(),
      "The first divergence; None where no tensor is worse than the tensors from which it is computed.");
  add_texts(result, describe);
  add_page(result);
  module.def("verify_layers", verify_layers, "reference"_a, "candidate"_a, nb::kw_only(), "emulated"_a.none(), "data"_a,
             "data_files"_a, "recipe"_a, "samples"_a, "seeds"_a, "shapes"_a, "ranges"_a, "relative"_a.none(),
             "absolute"_a.none(), "snr_db"_a.none(), "own_kernels"_a, "engine"_a, "progress"_a.none(),
             "cancel"_a.none());
}

}  // namespace graft::python
