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

/// Returns the tolerance of a tensor inside a network. f32 against f32: network_tolerance. If one of the tensors is f16
/// or bf16 or is computed from such a type (see rounding_type): 16 epsilon of that type, relative and of the largest.
/// If the candidate is `quantized`: 5 % of the largest for real numbers. 8-bit integers that come from rounding
/// (`rounded`): one step. Other integers: 0.
[[nodiscard]] Tolerance layer_tolerance(onnx::ElementType reference, onnx::ElementType candidate, bool quantized,
                                        bool rounded);

/// The minimum signal-to-noise ratio of an output of a model that was quantized to 8 bits: the default limit of
/// `verify` and `quantize`.
inline constexpr double quantized_limit_db = 20;

/// Returns the minimum signal-to-noise ratio of an output that one of two models computes in f16 or bf16 and the other
/// in a wider type: 40 dB in f16, an error of 1 % of the signal; 25 dB in bf16, which has an eighth of the precision.
/// Returns nothing for other types.
[[nodiscard]] std::optional<double> narrow_limit_db(onnx::ElementType type);

/// Returns the tolerance of an output. The errors of many 8-bit layers accumulate, and the acceptable error of an
/// element depends on the use of the network. Therefore the output of a `quantized` candidate is judged as a whole: the
/// noise may be a tenth of the signal, an SNR of 20 dB. For f16 and bf16 against a wider type, narrow_limit_db applies
/// to the whole output in addition to the tolerance of each element.
[[nodiscard]] Tolerance output_tolerance(onnx::ElementType reference, onnx::ElementType candidate, bool quantized,
                                         bool rounded);

/// Returns the tolerance that a caller requested, or nothing if no tolerance was requested. An SNR applies only to real
/// numbers.
[[nodiscard]] std::optional<Tolerance> given_tolerance(std::optional<double> relative, std::optional<double> absolute,
                                                       std::optional<double> snr_db, onnx::ElementType type);

/// Returns why a tensor has another tolerance than its own type implies: "it is computed from f16 in the candidate";
/// otherwise empty. The types are those that rounding_type returns.
[[nodiscard]] std::string why_tolerance(onnx::ElementType own, onnx::ElementType reference, onnx::ElementType candidate,
                                        bool quantized);

/// The parts of both models that show the first divergence or the failure when they run alone.
struct ReducedCase {
  onnx::Model reference;  ///< The part of the reference; empty if the candidate does not run.
  onnx::Model candidate;
  runtime::TensorMap inputs;  ///< The inputs of both parts.
};

/// The result of compare_layers.
struct LayerReport : report::LayersReport {
  /// The reduced case, if the report has a first divergence or a failure with nodes.
  std::optional<ReducedCase> reduced = {};
};

/// Compares two models layer by layer. Tensors are paired by TensorMatcher, and the remaining tensors by their
/// elements. Inputs and outputs are paired as in verify_models; an input whose channel axis is at another position in
/// the candidate (NHWC, NCHW) is transposed for it. Both models compute in f32, and f16 and bf16 tensors are rounded
/// after the nodes that compute them. If the engine has checks (Engine::checked), they are applied to the outputs,
/// always or when the outputs differ, unless a type is emulated. If `emulated` is set, the candidate is compared after
/// `emulate`, with the scales of run 0. Throws Error if the reference cannot run.
[[nodiscard]] LayerReport compare_layers(const runtime::Engine& engine, const onnx::Model& reference,
                                         const onnx::Model& candidate, const VerifyOptions& options = {},
                                         std::optional<Precision> emulated = {});

}  // namespace graft::verify
