// Reads and compares two models: the implementation of `verify`, `verify_layers` and the program.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "toolkit/model_files.hpp"
#include "verify/compare/verify_models.hpp"
#include "verify/inputs/given_inputs.hpp"
#include "verify/localize/layers.hpp"

namespace graft::toolkit {

struct ModelPair {
  graft::onnx::Model reference;
  graft::onnx::Model candidate;
};

struct CompareOptions {
  /// The options of the comparison. The functions of this header set `seeds` and `progress`.
  graft::verify::VerifyOptions common = {
      .across_formats = true, .may_be_narrower = true, .finds_unreached = true, .finds_beyond_rounding = true};
  /// Number of runs. Nothing: 3 for outputs; 1 for all tensors, or 2 where int8 is emulated.
  std::optional<std::size_t> seeds = {};
  std::optional<graft::verify::Precision> emulated = {};  ///< Emulated precision; only for compare_tensors.
  verify::GivenNames names = {};
  CpuEngine engine = CpuEngine::automatic;
};

/// Throws Error for own kernels with an engine that cannot run them.
void check_engine(const CompareOptions& options);

/// Throws Error for a signal to noise ratio together with a tolerance of each element.
void check_tolerances(const graft::verify::VerifyOptions& options);

/// Reads both models, after check_tolerances and check_engine. A network of another format than ONNX is read with the
/// shapes of the options or of the other model. Data and shapes in the options are converted to the names and the
/// layout of the reference.
[[nodiscard]] ModelPair read_pair(const ModelFiles& reference, const ModelFiles& candidate, CompareOptions& options);

/// Returns the engine that runs the models, as a wrapper of the engine of the options. The limits of comparisons hold
/// around it.
using EngineAround = std::function<std::unique_ptr<runtime::Engine>(const runtime::Engine& engine)>;

/// Compares the outputs. Data and shapes have the names and the layout of the reference. The models run in the engine
/// of the options, or in the wrapper that `around` returns. Throws Error where the reference does not run; Cancelled.
[[nodiscard]] report::VerifyReport compare_outputs(const graft::onnx::Model& reference,
                                                   const graft::onnx::Model& candidate, CompareOptions options,
                                                   const Watch& watch, const EngineAround& around = {});

/// Compares every tensor that both models have. Has the options and errors of compare_outputs.
[[nodiscard]] verify::LayerReport compare_tensors(const graft::onnx::Model& reference,
                                                  const graft::onnx::Model& candidate, CompareOptions options,
                                                  const Watch& watch);

}  // namespace graft::toolkit
