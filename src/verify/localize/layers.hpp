// Runs two models on the same inputs on the CPU and compares them tensor by tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/verify.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/compare.hpp"
#include "verify/compare/figures.hpp"
#include "verify/compare/match_tensors.hpp"
#include "verify/compare/rearrangement.hpp"
#include "verify/inputs/input_ranges.hpp"
#include "verify/judge/dispute.hpp"
#include "verify/judge/noise_floor.hpp"
#include "verify/localize/emulate.hpp"
#include "verify/localize/find_failure.hpp"

namespace graft::verify {

using report::Verdict;

struct LayerOptions {
  std::size_t seeds = 1;                      ///< Number of runs with synthetic inputs; see VerifyOptions.
  std::vector<runtime::TensorMap> data = {};  ///< Inputs of the runs; see VerifyOptions.
  std::map<std::string, std::int64_t, std::less<>> dims = {};  ///< Sizes of symbolic dimensions; see InputOptions.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes = {};  ///< Shapes by input; see InputOptions.
  InputRanges ranges = {};                                 ///< Ranges of synthetic inputs; see InputOptions.
  std::set<std::string, std::less<>> large_integers = {};  ///< Inputs with large integers; see VerifyOptions.
  /// Replaces layer_tolerance and output_tolerance; if only one of `relative` and `absolute` is given, the other one is
  /// 0.
  std::optional<double> relative = {};
  std::optional<double> absolute = {};
  /// Minimum signal-to-noise ratio of real outputs, instead of the element tolerances.
  std::optional<double> snr_db = {};
  runtime::OperatorKernels reference_kernels = runtime::OperatorKernels::functions;
  runtime::OperatorKernels candidate_kernels = runtime::OperatorKernels::functions;
  int threads = 0;
  /// If set, the candidate is compared after `emulate`, with the scales of run 0.
  std::optional<Precision> emulated = {};
  /// Maximum number of bytes of tensors that are kept at a time: the models run once per group of tensors of this size.
  std::int64_t memory = std::int64_t{1} << 30;
  std::function<void(const std::string& what, std::size_t done, std::size_t total)> progress = {};
};

/// Returns the tolerance of a tensor inside a network. f32 against f32: network_tolerance. If a side is f16 or bf16
/// or is computed from such a type (see rounding_type): 16 epsilon of that type, relative and of the largest. If the
/// candidate is `quantized`: 5 % of the largest for real numbers. 8-bit integers that come from rounding (`rounded`):
/// one step. Other integers: 0.
[[nodiscard]] Tolerance layer_tolerance(onnx::ElementType reference, onnx::ElementType candidate, bool quantized,
                                        bool rounded);

/// The minimum signal-to-noise ratio of an output of a model that was quantized to 8 bits: the default limit of
/// `verify` and `quantize`.
inline constexpr double quantized_limit_db = 20;

/// Returns the minimum signal-to-noise ratio of an output that one of two models computes in f16 or bf16 and the other
/// in a wider type: 40 dB in f16, an error of 1 % of the signal; 25 dB in bf16, which has an eighth of the precision.
/// Returns nothing for other types.
[[nodiscard]] std::optional<double> narrow_limit_db(onnx::ElementType type);

/// Returns the tolerance of an output. The errors of many 8-bit layers accumulate, and the error that an element may
/// have depends on the use of the network. Therefore a `quantized` candidate is judged as a whole: the noise may be a
/// tenth of the signal, an SNR of 20 dB. For f16 and bf16 against a wider type, narrow_limit_db applies to the whole
/// output in addition to the tolerance of each element.
[[nodiscard]] Tolerance output_tolerance(onnx::ElementType reference, onnx::ElementType candidate, bool quantized,
                                         bool rounded);

/// Returns the tolerance that a caller requested, or nothing if none was requested. An SNR applies only to real
/// numbers.
[[nodiscard]] std::optional<Tolerance> given_tolerance(std::optional<double> relative, std::optional<double> absolute,
                                                       std::optional<double> snr_db, onnx::ElementType type);

/// Returns why a tensor has another tolerance than its own type implies: "it is computed from f16 in the candidate";
/// otherwise empty. The types are those that rounding_type returns.
[[nodiscard]] std::string why_tolerance(onnx::ElementType own, onnx::ElementType reference, onnx::ElementType candidate,
                                        bool quantized);

/// The comparison of a tensor that both models have.
struct LayerComparison {
  std::string reference;  ///< The names of the tensors.
  std::string candidate;
  MatchedBy matched_by = MatchedBy::name;
  std::string op;          ///< The operator of the candidate's node that computes the tensor.
  NodeRef reference_node;  ///< The nodes that compute the tensor.
  NodeRef candidate_node;
  /// The nodes between this tensor and the preceding tensors that both models have, with the computing node last. There
  /// are several if a rewrite merged or split nodes.
  std::vector<NodeRef> reference_nodes;
  std::vector<NodeRef> candidate_nodes;
  bool is_output = false;  ///< Whether the tensor is an output of at least one model.

  std::string reference_type;  ///< For example "f32[2, 10]". This and the following fields are those of the worst run.
  std::string candidate_type;
  Tolerance tolerance;
  Difference difference;
  std::optional<report::NoiseFloor> floor;  ///< See ComparedOutput::floor.
  bool is_worst_lost = false;               ///< See ComparedOutput.
  ErrorFigures error;
  TensorRange reference_range;
  TensorRange candidate_range;
  std::optional<Rearrangement> layout;  ///< Set if the candidate has the reference's numbers in another order.
  std::string diagnosis;                ///< The error, if it was recognized: "NaN in the candidate", "transposed ...".
  std::size_t worst_run = 0;
  std::size_t failed_runs = 0;
  std::size_t lost_runs = 0;  ///< See ComparedOutput.
  /// The reason why the tensor was not compared: its numbers are random, or a model does not run if this tensor is
  /// returned. Empty if it was compared.
  std::string not_compared;
  bool is_random = false;
  /// The effect of the emulated type alone on the reference's numbers; nothing without emulation.
  std::optional<RoundingEffect> rounding;
  /// Decibels by which the signal-to-noise ratio is lower than the lowest of this tensor's inputs; nothing if an input
  /// has no ratio.
  std::optional<double> snr_lost_db;
  /// The difference that remains if the candidate's node gets the reference's inputs; nothing if this was not measured,
  /// because another tensor is the first divergence or because this tensor agrees.
  std::optional<Difference> local;

  std::int64_t compared = 0;       ///< See ComparedOutput.
  bool is_declared_empty = false;  ///< See ComparedOutput.

  [[nodiscard]] bool equal() const { return failed_runs == 0; }
  [[nodiscard]] bool is_always_empty() const { return is_declared_empty && difference.count == 0; }
  /// Returns the verdict. "Nothing compared" is a verdict only for outputs.
  [[nodiscard]] Verdict verdict() const {
    if (!equal()) return Verdict::different;
    const bool is_vacuous = is_output && not_compared.empty() && compared == 0 && !is_always_empty();
    return is_vacuous || (is_output && (is_random || is_lost_in_noise())) ? Verdict::nothing_compared : Verdict::same;
  }
  [[nodiscard]] bool is_lost_in_noise() const { return equal() && is_worst_lost; }
};

/// A part of both models that shows the difference when it runs alone.
struct ReducedCase {
  onnx::Model reference;
  onnx::Model candidate;
  runtime::TensorMap inputs;  ///< The inputs of both parts.
};

/// The first tensor, in order of computation, that the candidate computes wrongly although the tensors it is computed
/// from are right.
struct Divergence {
  std::size_t layer = 0;  ///< The index in LayerReport::layers.
  std::string why = {};
  std::optional<Rearrangement::Kind> order = {};  ///< Set if the numbers are right but their order is wrong.
  /// The differences between the nodes of both parts; nothing if they cannot be compared, because a rewrite replaced
  /// them or a type is emulated.
  std::optional<std::vector<std::string>> differences = {};
  ReducedCase reduced = {};
};

/// The result of compare_layers.
struct LayerReport {
  std::string reference_file;
  std::string candidate_file;
  std::vector<LayerComparison> layers;  ///< The layers in the candidate's order of computation.
  /// The layer that loses the most signal, if it loses more than half of it (6 dB).
  std::optional<std::size_t> weakest;
  std::optional<Failure> failure;   ///< The failure of the candidate; there are no layers in this case.
  std::optional<Divergence> first;  ///< Empty if the inputs explain every wrong tensor.
  /// The first layer with NaN in either model whose inputs contain no NaN.
  std::optional<std::size_t> nan_begins;
  std::vector<LargeConstant> large_constants;  ///< Constants of the candidate beyond the range of the emulated type.
  std::vector<std::string> problems;           ///< Inputs or outputs that one of the models lacks.
  std::vector<std::string> inputs;             ///< For example "image: f32[2, 1, 8, 8]", of the first run.
  bool has_data = false;                       ///< See VerifyReport.
  InputRanges ranges;                          ///< See VerifyReport.
  std::set<std::string, std::less<>> large_integers = {};  ///< See VerifyReport.
  std::string why_sizes;                                   ///< See VerifyReport.
  std::size_t runs = 0;
  /// Number of tensors that the reference computes. Those that belong to no layer lie inside `reference_nodes`.
  std::size_t reference_tensors = 0;
  std::size_t candidate_tensors = 0;
  /// See VerifyReport. Filled by a caller that also compares the outputs.
  std::vector<std::string> unreached = {};
  std::optional<Dispute> dispute = {};                ///< If set, the layers show the results of one engine only.
  std::string ran_in = {};                            ///< See VerifyReport.
  std::vector<std::string> left_out = {};             ///< See VerifyReport.
  bool is_quantized_candidate = false;                ///< See VerifyReport.
  std::vector<std::string> without_own_kernels = {};  ///< See VerifyReport.

  /// Whether all outputs agree, as in verify_models. Inner tensors may differ.
  [[nodiscard]] bool equal() const;
  /// Whether nothing was compared of some output; other outputs may differ.
  [[nodiscard]] bool nothing_compared() const;
  [[nodiscard]] Verdict verdict() const;
  /// Returns the first layer that differs, which may not be the origin of the difference; null if none differs.
  [[nodiscard]] const LayerComparison* first_different() const;
};

/// Compares two models layer by layer. Tensors are paired by TensorMatcher, and the remaining ones by their numbers.
/// Inputs and outputs are paired as in verify_models; an input whose channels are at another axis in the candidate
/// (NHWC, NCHW) is transposed for it. Both models compute in f32, and f16 and bf16 tensors are rounded after the nodes
/// that compute them. If the engine has checks (Engine::checked), they are applied to the outputs, always or when the
/// outputs differ, unless a type is emulated. Throws Error if the reference cannot run.
[[nodiscard]] LayerReport compare_layers(const runtime::Engine& engine, const onnx::Model& reference,
                                         const onnx::Model& candidate, const LayerOptions& options = {});

}  // namespace graft::verify
