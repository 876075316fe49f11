// Two models, read and compared: the whole reports that `verify` and the program are made from.
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
  /// Without `seeds` and `progress`, which are set here.
  graft::verify::VerifyOptions common = {.across_formats = true, .may_be_narrower = true, .finds_unreached = true};
  std::optional<std::size_t> seeds = {};  ///< Nothing: 3 for outputs; 1 for all tensors, 2 where int8 is emulated.
  std::optional<graft::verify::Precision> emulated = {};  ///< Of all tensors only.
  verify::GivenNames names = {};
  CpuEngine engine = CpuEngine::automatic;
};

struct OutputComparison {
  verify::VerifyReport report;
  verify::InputRanges ranges;           ///< Of synthetic inputs, as they were used.
  bool is_quantized_candidate = false;  ///< The candidate was calibrated for int8, and the reference was not.
  /// Own kernels were asked for, and these operators of ONNX's, which become plugins where TensorRT-RTX builds the
  /// engine, were computed as ONNX defines them: the file has no operator of Graft there.
  std::vector<std::string> without_own_kernels;
};

struct TensorComparison {
  verify::LayerReport report;
  verify::InputRanges ranges;                    ///< Of synthetic inputs, as they were used.
  bool is_quantized_candidate = false;           ///< The candidate was calibrated for int8, and the reference was not.
  std::vector<std::string> without_own_kernels;  ///< As in OutputComparison.
};

/// What `verify` made, as present.hpp shows it.
struct Verification {
  OutputComparison compared;
  Model reference;
  Model candidate;
  bool has_data = false;  ///< Inputs were given.
};

/// The same of `verify_layers`.
struct LayerVerification {
  TensorComparison compared;
  Model reference;
  Model candidate;
  bool has_data = false;
  std::optional<graft::verify::Precision> emulated;
};

/// Throws Error where own kernels are asked of an engine that has none.
void check_engine(const CompareOptions& options);

/// Throws Error where a signal to noise ratio and a tolerance of each element are given.
void check_tolerances(const graft::verify::VerifyOptions& options);

/// Reads both models, after check_tolerances and check_engine. A network of another format than ONNX is read with the
/// shapes that the options or the other model give; data and shapes in the options are brought to the names and the
/// layout of the reference.
[[nodiscard]] ModelPair read_pair(const ModelFiles& reference, const ModelFiles& candidate, CompareOptions& options);

/// What runs the models, made from the engine of the options.
using EngineAround = std::function<std::unique_ptr<runtime::Engine>(const runtime::Engine& engine)>;

/// Compares the outputs. Data and shapes have the names and the layout of the reference. The models run in the
/// engine of the options, or in one around it.
[[nodiscard]] OutputComparison compare_outputs(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                                               CompareOptions options, const Watch& watch,
                                               const EngineAround& around = {});

/// The same for every tensor that both models have.
[[nodiscard]] TensorComparison compare_tensors(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                                               CompareOptions options, const Watch& watch);

}  // namespace graft::toolkit
