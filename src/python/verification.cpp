// Binds graft.verify, which compares the outputs of two models.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graft/toolkit/verify.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/comparisons.hpp"
#include "python/fields.hpp"
#include "python/parts.hpp"
#include "python/results.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using report::ComparedOutput;
using report::NoiseFloor;
using report::OwnDefinition;
using report::SelectionDifference;
using report::Tolerance;
using report::VerifyReport;
using toolkit::VerifyResult;

VerifyResult verify(const toolkit::Model& reference, const toolkit::Model& candidate, const ArraysIn& data,
                    const std::vector<std::string>& data_files, const std::filesystem::path& recipe,
                    const std::string& labels, const std::vector<std::string>& judge_outputs, std::int64_t samples,
                    std::size_t seeds, const toolkit::Shapes& shapes, const PyRanges& ranges,
                    std::optional<double> relative, std::optional<double> absolute, std::optional<double> snr_db,
                    bool own_kernels, const std::string& engine, const nb::object& parts, const nb::object& progress,
                    const std::optional<toolkit::CancelToken>& cancel) {
  toolkit::VerifyOptions options = verify_options(data, {data_files, recipe, samples, labels}, seeds, shapes, ranges,
                                                  relative, absolute, snr_db, own_kernels, engine);
  options.judge_outputs = judge_outputs;
  return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& caller) {
    options.watch = watch;
    if (!parts.is_none()) {
      options.parts = [&](SampleRange runs) {
        return start_parts(caller, [&] { return parts(runs.begin, runs.end); });
      };
    }
    return toolkit::verify(reference, candidate, options);
  });
}

nb::bytes verify_part(const toolkit::Model& reference, const toolkit::Model& candidate, std::int64_t begin,
                      std::int64_t end, const ArraysIn& data, const std::vector<std::string>& data_files,
                      const std::filesystem::path& recipe, std::int64_t samples, std::optional<double> relative,
                      std::optional<double> absolute, std::optional<double> snr_db, const std::string& engine,
                      int threads) {
  toolkit::VerifyOptions options =
      verify_options(data, {data_files, recipe, samples}, 0, {}, {}, relative, absolute, snr_db, false, engine);
  options.threads = threads;
  return part_of(run_watched(nb::none(), std::nullopt, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
    options.watch = watch;
    return toolkit::verify_part(reference, candidate, {.begin = begin, .end = end}, options);
  }));
}

std::string describe(const VerifyResult& result) {
  std::string text = std::string("<graft.VerifyResult: ") + to_string(result.verdict()) + ", " +
                     count_of(result.outputs.size(), "output") + ", " + count_of(result.runs, "run");
  if (!result.problems.empty()) text += ", " + count_of(result.problems.size(), "problem");
  return text + ">";
}

}  // namespace

void add_verification(nb::module_& module) {
  nb::class_<Tolerance> tolerance(module, "Tolerance", "The differences that a comparison allows.");
  add_fields(tolerance);
  tolerance.def("__repr__", [](const Tolerance& allowed) {
    return "<tolerance: relative " + std::to_string(allowed.relative) + ">";
  });
  nb::class_<SelectionDifference> selection(
      module, "SelectionDifference",
      "The comparison of two tensors without order, along an axis whose size depends on rounding.");
  add_fields(selection);
  nb::class_<NoiseFloor> floor(module, "NoiseFloor",
                               "How much the reference differs from itself if its arithmetic rounds differently.");
  add_fields(floor);
  floor.def("__repr__", [](const NoiseFloor& noise) { return "<" + noise.text + ">"; });
  nb::class_<ComparedOutput> output(module, "ComparedOutput",
                                    "An output of the reference and the corresponding output of the candidate.");
  add_fields(output);
  output.def("__repr__", [](const ComparedOutput& compared) {
    return "<output '" + compared.reference.name + "': " + to_string(compared.verdict()) + ", " +
           std::to_string(compared.worst.mismatched) + " of " + std::to_string(compared.worst.count) + " outside>";
  });
  nb::class_<OwnDefinition> definition(module, "OwnDefinition",
                                       "An operator of a loaded library that computes nodes of the reference.");
  add_fields(definition);
  nb::class_<report::LabelAccuracy> accuracy(module, "LabelAccuracy", "The accuracy of a classifier in two models.");
  add_fields(accuracy);
  accuracy.def("__repr__", [](const report::LabelAccuracy& counted) {
    return "<accuracy of '" + counted.output + "': " + std::to_string(counted.reference_correct) + " and " +
           std::to_string(counted.candidate_correct) + " of " + std::to_string(counted.samples) + ">";
  });
  nb::class_<VerifyReport> report(module, "VerifyReport", "The comparison of the outputs of two models.");
  add_fields(report);
  nb::class_<VerifyResult, VerifyReport> result(module, "VerifyResult", "The result of graft.verify.");
  add_texts(result, describe);
  add_page(result);
  module.def("verify", verify, "reference"_a, "candidate"_a, nb::kw_only(), "data"_a, "data_files"_a, "recipe"_a,
             "labels"_a, "judge_outputs"_a, "samples"_a, "seeds"_a, "shapes"_a, "ranges"_a, "relative"_a.none(),
             "absolute"_a.none(), "snr_db"_a.none(), "own_kernels"_a, "engine"_a, "parts"_a.none(), "progress"_a.none(),
             "cancel"_a.none());
  module.def("verify_part", verify_part, "reference"_a, "candidate"_a, nb::kw_only(), "begin"_a, "end"_a, "data"_a,
             "data_files"_a, "recipe"_a, "samples"_a, "relative"_a.none(), "absolute"_a.none(), "snr_db"_a.none(),
             "engine"_a, "threads"_a);
}

}  // namespace graft::python
