// Compares two models: the part that `verify`, `verify_layers`, `cut` and the checks of `convert` and `quantize` share.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "graft/toolkit/verify.hpp"
#include "toolkit/work.hpp"
#include "verify/compare/verify_models.hpp"
#include "verify/inputs/given_inputs.hpp"

namespace graft::toolkit {

struct CompareOptions {
  /// The options of the comparison. run_comparison converts their data and shapes to the names and the layout of the
  /// reference, splits data into runs, and fills in missing sizes and ranges.
  graft::verify::VerifyOptions common = {
      .across_formats = true, .may_be_narrower = true, .finds_unreached = true, .finds_beyond_rounding = true};
  std::optional<std::size_t> seeds = {};  ///< Number of runs. Nothing: the default of the comparison.
  verify::GivenNames names = {};
  CpuEngine engine = CpuEngine::automatic;
};

/// Converts the public options. Throws Error for values out of range and for options that exclude each other.
[[nodiscard]] CompareOptions compare_options(const VerifyOptions& given);

/// Returns the engine that runs the models, as a wrapper of the engine of the options. The limits of comparisons hold
/// around it.
using EngineAround = std::function<std::unique_ptr<runtime::Engine>(const runtime::Engine& engine)>;

/// Compares the models in an engine and returns the report, to which run_comparison adds the engines.
using Comparison = std::function<report::ComparedModels&(Work& work, const runtime::Engine& engine)>;

/// Calls `compare` with the engine of the options, or with the wrapper that `around` returns. Before, the options are
/// completed: their data and shapes get the names and the layout of the reference. Throws Error for data, shapes and
/// ranges that fit neither model, and as Work::run does.
void run_comparison(const graft::onnx::Model& reference, const graft::onnx::Model& candidate, CompareOptions& options,
                    const Watch& watch, const EngineAround& around, const Comparison& compare);

/// Compares the outputs. Throws Error where the reference does not run, and as run_comparison does.
[[nodiscard]] report::VerifyReport compare_outputs(const graft::onnx::Model& reference,
                                                   const graft::onnx::Model& candidate, CompareOptions options,
                                                   const Watch& watch, const EngineAround& around = {});

}  // namespace graft::toolkit
