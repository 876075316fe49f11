// Comparison of two models.
#include "graft/toolkit/verify.hpp"

#include <utility>

#include "toolkit/access.hpp"
#include "toolkit/tensors.hpp"
#include "toolkit/work.hpp"
#include "verify/given_inputs.hpp"
#include "verify/verify_models.hpp"

namespace graft::toolkit {
namespace {

Verdict verdict_of(graft::Verdict verdict) {
  switch (verdict) {
    case graft::Verdict::different: return Verdict::different;
    case graft::Verdict::nothing_compared: return Verdict::nothing_compared;
    case graft::Verdict::same: break;
  }
  return Verdict::same;
}

graft::VerifyOptions options_of(const VerifyOptions& given) {
  if (!given.data.empty() && !given.ranges.empty()) {
    throw Error("VerifyOptions: ranges are of synthetic inputs, and there are none with data\nGive one of both");
  }
  graft::VerifyOptions options;
  options.seeds = given.seeds;
  options.shapes = {given.shapes.begin(), given.shapes.end()};
  if (!given.data.empty()) options.data.push_back(to_internal(given.data, "VerifyOptions::data"));
  for (const auto& [name, range] : given.ranges) {
    options.ranges.emplace(name, InputRange{.lowest = range.lowest, .highest = range.highest, .why = {}});
  }
  options.relative = given.relative;
  options.absolute = given.absolute;
  options.snr_db = given.snr_db;
  options.across_formats = true;
  options.may_be_narrower = true;
  return options;
}

ComparedOutput compared_of(const OutputReport& output) {
  return {.reference = {.name = output.reference_name, .type = output.reference_type},
          .candidate = {.name = output.candidate_name, .type = output.candidate_type},
          .verdict = verdict_of(output.verdict()),
          .compared = output.compared,
          .mismatched = output.worst.mismatched,
          .largest_absolute = output.worst.worst_absolute(),
          .largest_relative = output.worst.worst_relative(),
          .snr_db = output.figures.snr_db,
          .note = output.not_compared.empty() ? output.note : "not compared: " + output.not_compared};
}

}  // namespace

VerifyResult verify(const Model& reference, const Model& candidate, const VerifyOptions& options) {
  Work work(options.watch);
  return work.run([&] {
    graft::VerifyOptions inner = options_of(options);
    inner.progress = [&](std::size_t done, std::size_t total) {
      work.report(static_cast<double>(done) / static_cast<double>(total + 1), "comparing outputs");
    };
    const GivenNames names{
        .data = "VerifyOptions::data", .shapes = "VerifyOptions::shapes", .ranges = "VerifyOptions::ranges"};
    place_inputs(model_of(reference), model_of(candidate), inner, names);
    complete_inputs(model_of(reference), model_of(candidate), inner, names);
    VerifyReport report = verify_models(work.engine(), model_of(reference), model_of(candidate), inner);
    VerifyResult result{
        .verdict = verdict_of(report.verdict()), .outputs = {}, .problems = report.problems, .runs = report.runs};
    for (const OutputReport& output : report.outputs) result.outputs.push_back(compared_of(output));
    return result;
  });
}

}  // namespace graft::toolkit
