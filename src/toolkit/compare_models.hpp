// Compares two models: the part that `verify`, `verify_layers`, `cut` and the checks of `convert` and `quantize` share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graft/toolkit/verify.hpp"
#include "toolkit/work.hpp"
#include "verify/compare/verify_models.hpp"

namespace graft::toolkit {

/// Returns the options of the internal comparison for the public options `given`, without data. Throws Error for values
/// out of range and for options that exclude each other.
[[nodiscard]] graft::verify::VerifyOptions engine_options(const VerifyOptions& given);

/// Reads the data of the public options `given` into `options`, for the inputs of both models. Returns a note for each
/// conversion of the data.
[[nodiscard]] std::vector<std::string> read_given_data(const VerifyOptions& given, const graft::onnx::Model& reference,
                                                       const graft::onnx::Model& candidate,
                                                       graft::verify::VerifyOptions& options);

/// A function that returns an engine which runs models in `engine`, but in another way, for example with less memory.
/// The limits of a comparison on memory and time apply to the returned engine.
using EngineAround = std::function<std::unique_ptr<runtime::Engine>(const runtime::Engine& engine)>;

/// Compares the models with `engine` and returns the report, in which run_comparison then records the engines that ran.
using Comparison = std::function<report::ComparedModels&(Work& work, const runtime::Engine& engine)>;

/// Calls `compare` with the engine that `choice` selects or, if `around` is set, with the engine that `around` returns
/// for it. Before the call, `options` are completed: their data and shapes get the names and the layout of the
/// reference, data are split into runs, and missing sizes and ranges are filled in. Throws Error for data, shapes and
/// ranges that fit neither model, and as Work::run does.
void run_comparison(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                    graft::verify::VerifyOptions& options, CpuEngine choice, const Watch& watch,
                    const EngineAround& around, const Comparison& compare);

/// Compares the outputs of the models and returns the report. `choice` and `around` select the engine as in
/// run_comparison. Throws Error if the reference does not run, and the errors of run_comparison.
[[nodiscard]] report::VerifyReport compare_outputs(const graft::onnx::Model& reference,
                                                   const graft::onnx::Model& candidate,
                                                   graft::verify::VerifyOptions options, CpuEngine choice,
                                                   const Watch& watch, const EngineAround& around = {});

}  // namespace graft::toolkit
