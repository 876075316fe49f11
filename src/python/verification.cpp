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
  nb::class_<ComparedOutput>(module, "ComparedOutput",
                             "An output of the reference and the corresponding output of the candidate.")
      .def_ro("reference", &ComparedOutput::reference)
      .def_ro("candidate", &ComparedOutput::candidate)
      .def_prop_ro(
          "verdict", [](const ComparedOutput& output) { return to_string(output.verdict); },
          "'same', 'different' or 'nothing compared'.")
      .def_ro("compared", &ComparedOutput::compared, "The number of finite elements in all runs.")
      .def_ro("mismatched", &ComparedOutput::mismatched,
              "The number of elements outside the tolerance, in the worst run.")
      .def_ro("largest_absolute", &ComparedOutput::largest_absolute,
              "The largest absolute difference, in the worst run; infinite or NaN where only one side is.")
      .def_ro("largest_relative", &ComparedOutput::largest_relative)
      .def_ro("snr_db", &ComparedOutput::snr_db,
              "The signal to noise ratio of all runs in dB; None where nothing differs.")
      .def_ro(
          "note", &ComparedOutput::note,
          "The transposition that maps one layout to the other, or why the outputs were not compared; mostly empty.")
      .def("__repr__", [](const ComparedOutput& output) {
        return "<output '" + output.reference.name + "': " + to_string(output.verdict) + ", " +
               std::to_string(output.mismatched) + " of " + std::to_string(output.compared) + " outside>";
      });
  nb::class_<VerifyResult> result(module, "VerifyResult", "The result of graft.verify.");
  result
      .def_prop_ro(
          "verdict", [](const VerifyResult& found) { return to_string(found.verdict); },
          "'same'; 'different'; 'nothing compared': no output element was finite in both models, or the outputs are "
          "random, which proves nothing; or 'disputed': the CPU engines disagree on one of the models.")
      .def_ro("dispute", &VerifyResult::dispute,
              "The engines that disagree, and the first node where they do; mostly empty.")
      .def_prop_ro("same", [](const VerifyResult& found) { return found.verdict == toolkit::Verdict::same; })
      .def_ro("outputs", &VerifyResult::outputs, "The outputs, in the order of the reference.")
      .def_ro("problems", &VerifyResult::problems,
              "Inputs or outputs that one model lacks or that differ in type or shape.")
      .def_ro("runs", &VerifyResult::runs)
      .def_ro("ran_in", &VerifyResult::ran_in,
              "The CPU engines that ran the models, for example 'ONNX Runtime 1.31.1'.")
      .def_ro("left_out", &VerifyResult::left_out,
              "Why a model did not run in the first choice of engines, known wrong results of the engine that ran it, "
              "and how this engine rewrote the model; mostly empty.")
      .def_ro("unreached", &VerifyResult::unreached,
              "Differences that the inputs did not exercise where the verdict is 'same', one sentence each: weights "
              "that differ "
              "and on which no output depends in any run, and branches and loop bodies of the reference that no run "
              "executed.")
      .def_ro("without_own_kernels", &VerifyResult::without_own_kernels,
              "With own_kernels: ONNX operators of the candidate that were not computed by Graft's kernels, which "
              "TensorRT-RTX "
              "runs as plugins.");
  add_texts(result, describe);
  add_page(result);
  module.def("verify", verify, "reference"_a, "candidate"_a, nb::kw_only(), "data"_a, "seeds"_a, "shapes"_a, "ranges"_a,
             "relative"_a.none(), "absolute"_a.none(), "snr_db"_a.none(), "own_kernels"_a, "engine"_a,
             "progress"_a.none(), "cancel"_a.none());
}

}  // namespace graft::python
