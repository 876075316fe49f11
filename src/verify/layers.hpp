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
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/compare.hpp"
#include "verify/dispute.hpp"
#include "verify/emulate.hpp"
#include "verify/figures.hpp"
#include "verify/find_failure.hpp"
#include "verify/input_ranges.hpp"
#include "verify/match_tensors.hpp"
#include "verify/noise_floor.hpp"
#include "verify/rearrangement.hpp"
#include "verify/verdict.hpp"

namespace graft::verify {

struct LayerOptions {
  std::size_t seeds = 1;                                                      ///< As in VerifyOptions.
  std::vector<runtime::TensorMap> data = {};                                  ///< As in VerifyOptions.
  std::map<std::string, std::int64_t, std::less<>> dims = {};                 ///< As in InputOptions.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes = {};  ///< As in InputOptions.
  InputRanges ranges = {};                                                    ///< As in InputOptions.
  std::set<std::string, std::less<>> large_integers = {};                     ///< As in VerifyOptions.
  std::optional<double> relative = {};  ///< Instead of layer_tolerance; the other one is then 0.
  std::optional<double> absolute = {};
  std::optional<double> snr_db = {};  ///< Of outputs that are real, instead of either.
  runtime::OperatorKernels reference_kernels = runtime::OperatorKernels::functions;
  runtime::OperatorKernels candidate_kernels = runtime::OperatorKernels::functions;
  int threads = 0;
  std::optional<Precision> emulated = {};  ///< Judges the candidate as `emulate` makes it, with the scales of run 0.
  /// Bytes of tensors that are kept at a time: the models run once for each group of tensors that take as much.
  std::int64_t memory = std::int64_t{1} << 30;
  std::function<void(const std::string& what, std::size_t done, std::size_t total)> progress = {};
};

/// What a tensor inside a network may differ by. f32 against f32: Tolerance::of_network. Where a side is f16 or bf16,
/// or computed from such (see rounding_type), 16 epsilon of that type, relative and of the largest. Where the
/// candidate is `quantized`, 5 % of the largest, of reals; one step of 8-bit integers that come from rounding. Nothing
/// for other integers.
[[nodiscard]] Tolerance layer_tolerance(onnx::ElementType reference, onnx::ElementType candidate, bool quantized,
                                        bool rounded);

/// The least signal to noise ratio of an output of a model that was quantized to 8 bits: the bar of `verify` and of
/// `quantize` where no other is given.
inline constexpr double quantized_limit_db = 20;

/// The least signal to noise ratio of an output that one of two models computes in f16 or bf16, and the other in a
/// wider type: 40 dB in f16, an error of 1 % of the signal; 25 dB in bf16, which has an eighth of the digits. Nothing
/// for other types.
[[nodiscard]] std::optional<double> narrow_limit_db(onnx::ElementType type);

/// The same for an output: the errors of many layers of 8 bits add up, and how far each element may be off depends on
/// what the network is for. So it is judged as a whole: a `quantized` candidate may have a tenth of the signal as
/// noise, an SNR of 20 dB. Of f16 and bf16 against a wider type the whole is judged besides the elements, by
/// narrow_limit_db.
[[nodiscard]] Tolerance output_tolerance(onnx::ElementType reference, onnx::ElementType candidate, bool quantized,
                                         bool rounded);

/// What a caller asked for; nothing where that was nothing. An SNR is one of real numbers.
[[nodiscard]] std::optional<Tolerance> given_tolerance(std::optional<double> relative, std::optional<double> absolute,
                                                       std::optional<double> snr_db, onnx::ElementType type);

/// Why a tensor has another tolerance than its own type: "it is computed from f16 in the candidate". The types are
/// those that rounding_type gives.
[[nodiscard]] std::string why_tolerance(onnx::ElementType own, onnx::ElementType reference, onnx::ElementType candidate,
                                        bool quantized);

/// One tensor that both models have.
struct LayerComparison {
  std::string reference;  ///< Names of the tensors.
  std::string candidate;
  MatchedBy matched_by = MatchedBy::name;
  std::string op;          ///< Of the candidate's node that computes it.
  NodeRef reference_node;  ///< What computes it.
  NodeRef candidate_node;
  /// What lies between this tensor and those before it that both models have, the node itself last. More than one where
  /// a rewrite made fewer nodes of many, or more.
  std::vector<NodeRef> reference_nodes;
  std::vector<NodeRef> candidate_nodes;
  bool is_output = false;  ///< Of one of them at least.

  std::string reference_type;  ///< "f32[2, 10]", of the worst run; so is what follows.
  std::string candidate_type;
  Tolerance tolerance;
  std::string why_tolerance;  ///< Where it is not that of its own type.
  Difference difference;
  std::optional<NoiseFloor> floor;  ///< As OutputReport::floor.
  ErrorFigures error;
  TensorRange reference_range;
  TensorRange candidate_range;
  std::optional<Rearrangement> layout;  ///< Where the candidate's numbers are the reference's in another order.
  std::string diagnosis;  ///< What is wrong, where it was recognized: "NaN in the candidate", "transposed ...".
  std::size_t worst_run = 0;
  std::size_t failed_runs = 0;
  std::size_t lost_runs = 0;  ///< As in OutputReport.
  /// Why it was not compared: its numbers are random, or one of the models runs, and does not where this tensor is
  /// returned. Empty where it was.
  std::string not_compared;
  bool is_random = false;
  /// What the emulated type does to the reference's numbers, by itself; nothing where none is emulated.
  std::optional<RoundingEffect> rounding;
  /// Decibels by which the signal to noise ratio is below the lowest of the tensors that this is made of; nothing where
  /// one of these has none.
  std::optional<double> snr_lost_db;
  /// What is left of the difference when the candidate's node is given the reference's inputs; nothing where that was
  /// not looked at, since another tensor was found to be the first divergence or this one agrees.
  std::optional<Difference> local;

  std::int64_t compared = 0;     ///< As in OutputReport.
  bool is_always_empty = false;  ///< As in OutputReport.

  [[nodiscard]] bool equal() const { return failed_runs == 0; }
  /// Only of an output does it matter that nothing was compared.
  [[nodiscard]] Verdict verdict() const {
    if (!equal()) return Verdict::different;
    const bool is_vacuous = is_output && not_compared.empty() && compared == 0 && !is_always_empty;
    return is_vacuous || (is_output && (is_random || is_lost_in_noise())) ? Verdict::nothing_compared : Verdict::same;
  }
  [[nodiscard]] bool is_lost_in_noise() const { return equal() && graft::verify::is_lost_in_noise(difference, floor); }
};

/// A part of both models in which the difference shows by itself.
struct ReducedCase {
  onnx::Model reference;
  onnx::Model candidate;
  runtime::TensorMap inputs;  ///< Of both.
};

/// The first tensor, in the order of computation, that the candidate gives wrongly though what it is made of is right.
struct Divergence {
  std::size_t layer = 0;  ///< Of LayerReport::layers.
  std::string why = {};
  std::optional<Rearrangement::Kind> order = {};  ///< Where the numbers are right, and their order is what is wrong.
  /// What the nodes themselves have that is another; nothing where they cannot be set side by side, since a rewrite
  /// made others of them or a type is emulated.
  std::optional<std::vector<std::string>> differences = {};
  ReducedCase reduced = {};
};

struct LayerReport {
  std::vector<LayerComparison> layers;  ///< In the candidate's order of computation.
  std::optional<std::size_t> weakest;   ///< The layer that loses most, if it is more than half of the signal (6 dB).
  std::optional<Failure> failure;       ///< Of the candidate; then there are no layers.
  std::optional<Divergence> first;      ///< Nothing where no tensor is worse than what it is made of.
  /// The first layer with NaN in either model, where what it is made of has none.
  std::optional<std::size_t> nan_begins;
  std::vector<LargeConstant> large_constants;  ///< Of the candidate, beyond the range of the emulated type.
  std::vector<std::string> problems;           ///< Inputs or outputs that one of the models lacks.
  std::vector<std::string> inputs;             ///< "image: f32[2, 1, 8, 8]", of the first run.
  InputRanges narrowed;  ///< Of synthetic integers, so that the reference runs; not those of the options.
  std::set<std::string, std::less<>> large_integers = {};  ///< As in VerifyReport.
  std::string why_sizes;                                   ///< As in VerifyReport.
  std::size_t runs = 0;
  std::size_t reference_tensors = 0;  ///< Computed by the reference; those of no layer lie inside `reference_nodes`.
  std::size_t candidate_tensors = 0;
  /// As in VerifyReport; filled by whoever compares the outputs too.
  std::vector<std::string> unreached = {};
  std::optional<Dispute> dispute = {};     ///< Then the layers are what one engine says.
  std::string ran_in = {};                 ///< As in VerifyReport.
  std::vector<std::string> left_out = {};  ///< As in VerifyReport.

  /// All outputs agree, as verify_models has it; tensors inside may differ.
  [[nodiscard]] bool equal() const;
  /// Whether there is an output of which nothing was compared; others may differ.
  [[nodiscard]] bool nothing_compared() const;
  [[nodiscard]] Verdict verdict() const;
  /// The first layer that differs, whether or not it is where the difference comes from.
  [[nodiscard]] const LayerComparison* first_different() const;
};

/// Tensors are paired as TensorMatcher does, and those left over by their numbers. Inputs and outputs are paired as
/// verify_models does; an input whose channels the candidate has in another place (NHWC, NCHW) is transposed for it.
/// Both models are run in f32, f16 and bf16 tensors rounded where they are made. Where the engine has checks
/// (Engine::checked) they are made for the outputs, of a difference or always, unless a type is emulated. Throws Error
/// where the reference cannot run.
[[nodiscard]] LayerReport compare_layers(const runtime::Engine& engine, const onnx::Model& reference,
                                         const onnx::Model& candidate, const LayerOptions& options = {});

}  // namespace graft::verify
