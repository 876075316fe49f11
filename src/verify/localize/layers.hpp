// Runs two models on the same inputs on the CPU and compares them tensor by tensor.
#pragma once

#include <optional>
#include <string>

#include "graft/report/layers.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/compare.hpp"
#include "verify/compare/verify_models.hpp"
#include "verify/localize/emulate.hpp"

namespace graft::verify {

using report::ComparedLayer;
using report::Divergence;

/// Returns the tolerance of a tensor inside a network, for its types in both models.
/// - f32 in both: network_tolerance.
/// - f16 or bf16 in one of them, or computed from such a type (see rounding_type): 16 epsilon of that type, relative
///   and of the largest element.
/// - Real numbers of a `quantized` candidate: 5 % of the largest element.
/// - 8-bit integers that come from rounding (`rounded`): one step. Other integers: 0.
[[nodiscard]] Tolerance layer_tolerance(onnx::ElementType reference, onnx::ElementType candidate, bool quantized,
                                        bool rounded);

/// The default minimum signal-to-noise ratio, in dB, of an output of a model that was quantized to 8 bits, for `verify`
/// and `quantize`.
inline constexpr double quantized_limit_db = 20;

/// Returns the minimum signal-to-noise ratio, in dB, of an output that one model computes in f16 or bf16 and the other
/// in a wider type: 40 in f16 (an error of 1 % of the signal), 25 in bf16, which has an eighth of the precision.
/// Returns nothing for other types.
[[nodiscard]] std::optional<double> narrow_limit_db(onnx::ElementType type);

/// Returns the tolerance of an output, for its types in both models. The output of a `quantized` candidate is judged as
/// a whole, by a signal-to-noise ratio of 20 dB (noise of a tenth of the signal): the errors of many 8-bit layers
/// accumulate, and which error of an element is acceptable depends on the use of the network. For f16 and bf16 against
/// a wider type, narrow_limit_db applies to the whole output in addition to the tolerance of each element.
[[nodiscard]] Tolerance output_tolerance(onnx::ElementType reference, onnx::ElementType candidate, bool quantized,
                                         bool rounded);

/// Returns the tolerance that a caller requested for an output of type `type`, or nothing if no limit that applies to
/// it is set. `snr_db` applies only to real numbers.
[[nodiscard]] std::optional<Tolerance> given_tolerance(std::optional<double> relative, std::optional<double> absolute,
                                                       std::optional<double> snr_db, onnx::ElementType type);

/// Returns, for reports, why a tensor has a wider tolerance than that of its own type, such as "it is computed from f16
/// in the candidate"; otherwise an empty string. `reference` and `candidate` are the types that rounding_type returns.
[[nodiscard]] std::string why_tolerance(onnx::ElementType own, onnx::ElementType reference, onnx::ElementType candidate,
                                        bool quantized);

/// Small models, extracted from both models, that reproduce the first divergence or the failure.
struct ReducedCase {
  onnx::Model reference;  ///< The part of the reference; empty if the candidate does not run.
  onnx::Model candidate;
  runtime::TensorMap inputs;  ///< The inputs of both parts.
};

/// The result of compare_layers: the report, and models that reproduce the problem.
struct LayerReport : report::LayersReport {
  /// The reduced case; empty if the report has neither a first divergence nor a failure with nodes.
  std::optional<ReducedCase> reduced = {};
};

/// Compares two models layer by layer and returns a report. Tensors are paired by TensorMatcher, and the remaining ones
/// by their elements. Inputs and outputs are paired as in verify_models; an input whose channel axis is at another
/// position in the candidate (NHWC, NCHW) is transposed for it. Both models compute in f32, with f16 and bf16 tensors
/// rounded after the nodes that compute them. If `emulated` is set, the candidate is first converted by emulate(), with
/// int8 scales from run 0. If Engine::checked() exists and no type is emulated, the outputs are also checked with that
/// engine if they differ, or always if the engine is configured so. Throws Error if the reference cannot run.
[[nodiscard]] LayerReport compare_layers(const runtime::Engine& engine, const onnx::Model& reference,
                                         const onnx::Model& candidate, const VerifyOptions& options = {},
                                         std::optional<Precision> emulated = {});

}  // namespace graft::verify
