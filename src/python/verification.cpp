// Binds graft.verify, which compares the outputs of two models.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "graft/toolkit/verify.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/comparisons.hpp"
#include "python/results.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using toolkit::ComparedOutput;
using toolkit::VerifyResult;

VerifyResult verify(const toolkit::Model& reference, const toolkit::Model& candidate, const ArraysIn& data,
                    std::size_t seeds, const toolkit::Shapes& shapes, const PyRanges& ranges,
                    std::optional<double> relative, std::optional<double> absolute, std::optional<double> snr_db,
                    bool own_kernels, const std::string& engine, const nb::object& progress,
                    const std::optional<toolkit::CancelToken>& cancel) {
  toolkit::VerifyOptions options =
      verify_options(data, seeds, shapes, ranges, relative, absolute, snr_db, own_kernels, engine);
  return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
    options.watch = watch;
    return toolkit::verify(reference, candidate, options);
  });
}

std::string describe(const VerifyResult& result) {
  std::string text = std::string("<graft.VerifyResult: ") + to_string(result.verdict) + ", " +
                     count_of(result.outputs.size(), "output") + ", " + count_of(result.runs, "run");
  if (!result.problems.empty()) text += ", " + count_of(result.problems.size(), "problem");
  return text + ">";
}

}  // namespace

void add_verification(nb::module_& module) {
  nb::class_<ComparedOutput>(module, "ComparedOutput", "Two outputs that belong together.")
      .def_ro("reference", &ComparedOutput::reference)
      .def_ro("candidate", &ComparedOutput::candidate)
      .def_prop_ro(
          "verdict", [](const ComparedOutput& output) { return to_string(output.verdict); },
          "'same', 'different' or 'nothing compared'.")
      .def_ro("compared", &ComparedOutput::compared, "Finite elements of all runs.")
      .def_ro("mismatched", &ComparedOutput::mismatched, "Elements outside the tolerance, of the worst run.")
      .def_ro("largest_absolute", &ComparedOutput::largest_absolute, "Difference, of the worst run.")
      .def_ro("largest_relative", &ComparedOutput::largest_relative)
      .def_ro("snr_db", &ComparedOutput::snr_db, "Of all runs; None where nothing differs.")
      .def_ro("note", &ComparedOutput::note, "How the outputs were brought together, or why not.")
      .def("__repr__", [](const ComparedOutput& output) {
        return "<output '" + output.reference.name + "': " + to_string(output.verdict) + ", " +
               std::to_string(output.mismatched) + " of " + std::to_string(output.compared) + " outside>";
      });
  nb::class_<VerifyResult> result(module, "VerifyResult", "What graft.verify found.");
  result
      .def_prop_ro(
          "verdict", [](const VerifyResult& found) { return to_string(found.verdict); },
          "'same', 'different', 'nothing compared': no output element was a finite number in both models, or they are "
          "random, which proves nothing; or 'disputed': the CPU engines compute one of the models differently.")
      .def_ro("dispute", &VerifyResult::dispute, "Which engines disagree, and first at which node; mostly empty.")
      .def_prop_ro("same", [](const VerifyResult& found) { return found.verdict == toolkit::Verdict::same; })
      .def_ro("outputs", &VerifyResult::outputs, "In the order of the reference.")
      .def_ro("problems", &VerifyResult::problems,
              "Inputs or outputs that one of the models lacks, other types or shapes.")
      .def_ro("runs", &VerifyResult::runs)
      .def_ro("ran_in", &VerifyResult::ran_in, "The CPU engines that ran the models: 'ONNX Runtime 1.31.1'.")
      .def_ro("left_out", &VerifyResult::left_out,
              "Why a model ran in another engine than that, and what that engine is known to compute wrongly.")
      .def_ro(
          "unreached", &VerifyResult::unreached,
          "Where the verdict is 'same': weights that differ in the files and that no output depends on in any run, and "
          "branches and loop bodies of the reference that no run executed; a sentence for each.")
      .def_ro("without_own_kernels", &VerifyResult::without_own_kernels,
              "With own_kernels: operators of ONNX's in the candidate that were computed as ONNX defines them.");
  add_texts(result, describe);
  add_page(result);
  module.def("verify", verify, "reference"_a, "candidate"_a, nb::kw_only(), "data"_a, "seeds"_a, "shapes"_a, "ranges"_a,
             "relative"_a.none(), "absolute"_a.none(), "snr_db"_a.none(), "own_kernels"_a, "engine"_a,
             "progress"_a.none(), "cancel"_a.none());
}

}  // namespace graft::python
