// `verify`: compares two models by their outputs.
#include "graft/toolkit/verify.hpp"

#include <utility>

#include "toolkit/access.hpp"
#include "toolkit/checks.hpp"
#include "toolkit/tensors.hpp"
#include "toolkit/verify_options.hpp"

namespace graft::toolkit {
namespace {

void check(const VerifyOptions& options) {
  check_from_0("VerifyOptions::relative", options.relative);
  check_from_0("VerifyOptions::absolute", options.absolute);
  check_finite("VerifyOptions::snr_db", options.snr_db);
  if (options.seeds != 0 && has_data(options)) {
    throw Error(
        "VerifyOptions::seeds: this setting creates synthetic inputs, which data replaces\nGive only one of the two");
  }
  for (const auto& [name, range] : options.ranges) {
    const std::string option = fmt::format("VerifyOptions::ranges['{}']", name);
    check_finite(option, range.lowest);
    check_finite(option, range.highest);
    if (range.lowest > range.highest) {
      throw Error(fmt::format("{}: found {} to {}; the lowest must not be above the highest", option, range.lowest,
                              range.highest));
    }
  }
}

}  // namespace

CompareOptions compare_options(const VerifyOptions& given, const graft::onnx::Model& reference,
                               const graft::onnx::Model& candidate) {
  check(given);
  CompareOptions options;
  options.names = {.data = "VerifyOptions::data", .shapes = "VerifyOptions::shapes", .ranges = "VerifyOptions::ranges"};
  if (given.seeds != 0) options.seeds = given.seeds;
  options.common.shapes = {given.shapes.begin(), given.shapes.end()};
  if (has_data(given)) options.common.data.push_back(to_internal(given.data, given.data_views, options.names.data));
  for (const auto& [name, range] : given.ranges) {
    options.common.ranges.emplace(name,
                                  verify::InputRange{.lowest = range.lowest, .highest = range.highest, .why = {}});
  }
  options.common.relative = given.relative;
  options.common.absolute = given.absolute;
  options.common.snr_db = given.snr_db;
  options.engine = given.engine;
  check_tolerances(options.common);
  if (given.own_kernels) options.common.candidate_kernels = runtime::OperatorKernels::own;
  check_engine(options);
  place_inputs(reference, candidate, options.common, options.names);
  return options;
}

VerifyResult verify(const Model& reference, const Model& candidate, const VerifyOptions& options) {
  return verify(reference, candidate, options, {});
}

VerifyResult verify(const Model& reference, const Model& candidate, const VerifyOptions& options,
                    const EngineAround& around) {
  return {compare_outputs(model_of(reference), model_of(candidate),
                          compare_options(options, model_of(reference), model_of(candidate)), options.watch, around),
          candidate};
}

}  // namespace graft::toolkit
