// Runs two models on the same inputs on the CPU and compares their outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graft/report/verify.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/compare.hpp"
#include "verify/compare/output_figures.hpp"
#include "verify/inputs/inputs.hpp"
#include "verify/judge/dispute.hpp"
#include "verify/judge/noise_floor.hpp"

namespace graft::verify {

using report::Verdict;

/// The settings of verify_models.
struct VerifyOptions {
  std::size_t seeds = 3;     ///< Number of runs with synthetic inputs, if `data` is empty.
  bool edge_values = false;  ///< Whether to add runs with zeros, negative, large and small numbers, with another batch.
  std::vector<runtime::TensorMap> data = {};  ///< Inputs of the runs. A name that the models do not have is refused.
  std::map<std::string, std::int64_t, std::less<>> dims = {};  ///< Sizes of symbolic dimensions; see InputOptions.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes = {};  ///< Shapes by input; see InputOptions.
  InputRanges ranges = {};  ///< Ranges of synthetic inputs; see InputOptions.
  /// Inputs with large integers in all runs but the first; see InputOptions.
  std::set<std::string, std::less<>> large_integers = {};
  /// Replaces the default tolerances (Tolerance::of_network, output_tolerance) and the noise floor; if only one of
  /// `relative` and `absolute` is given, the other one is 0.
  std::optional<double> relative = {};
  std::optional<double> absolute = {};
  /// Minimum signal-to-noise ratio of real outputs, instead of the element tolerances.
  std::optional<double> snr_db = {};
  runtime::OperatorKernels reference_kernels = runtime::OperatorKernels::functions;
  runtime::OperatorKernels candidate_kernels = runtime::OperatorKernels::functions;
  int threads = 0;  ///< Number of threads; see runtime::CompileOptions.
  /// Whether the models may have different formats: an input whose channels are at another axis in the candidate (NHWC,
  /// NCHW) is transposed for it, and then outputs are too; an output that one model has only as an inner tensor is
  /// found there.
  bool across_formats = false;
  /// Whether one model may be narrower than the other (f16 against f32) or quantized: f16 and bf16 tensors are rounded
  /// after the nodes that compute them, and results that depend on them have the tolerance of compare_layers.
  bool may_be_narrower = false;
  bool offers_ranges = true;     ///< Whether an error may advise to set `ranges`.
  bool finds_unreached = false;  ///< Whether to fill VerifyReport::unreached, for which the reference may run again.
  std::function<void(std::size_t done, std::size_t total)> progress = {};  ///< Called after each run.
};

/// The comparison of one output over all runs.
struct OutputReport {
  std::string reference_name;
  std::string candidate_name;  ///< Differs from `reference_name` if outputs were paired by order.
  std::string reference_type;  ///< For example "f32[2, 10]", of the worst run.
  std::string candidate_type;
  Tolerance tolerance;
  std::string why_tolerance;  ///< The reason why the tolerance is not that of the output's own type.
  Difference worst;           ///< The difference of the run that is furthest outside, or nearest to, the limit.
  OutputFigures figures;      ///< The figures of all runs together.
  /// The noise floor of the worst run; nothing if the tolerance was sufficient or was given.
  std::optional<NoiseFloor> floor;
  std::size_t worst_run = 0;
  std::size_t failed_runs = 0;
  std::size_t lost_runs = 0;  ///< Number of runs that are equal only because of an unreliable floor (is_lost_in_noise).
  /// For example "transposed by [0, 2, 3, 1] ..." or "a tensor inside the candidate, which does not return it".
  std::string note;
  /// The reason why only type and rank were compared: the numbers are random. Empty if the numbers were compared.
  std::string not_compared;
  std::int64_t compared = 0;     ///< Number of finite elements that were compared in all runs.
  bool is_always_empty = false;  ///< Whether the reference declares a dimension of size 0.
  [[nodiscard]] bool equal() const { return failed_runs == 0; }
  [[nodiscard]] Verdict verdict() const {
    if (!equal()) return Verdict::different;
    return (compared == 0 && !is_always_empty) || is_lost_in_noise() ? Verdict::nothing_compared : Verdict::same;
  }
  [[nodiscard]] bool is_lost_in_noise() const { return equal() && graft::verify::is_lost_in_noise(worst, floor); }
};

/// Returns why nothing was compared of an output: the reason of the report, or else what its numbers are.
[[nodiscard]] std::string why_nothing_compared(const std::string& not_compared, bool is_lost_in_noise);

/// The result of verify_models.
struct VerifyReport {
  std::vector<OutputReport> outputs;  ///< The outputs in the order of the reference.
  /// Inputs or outputs that one of the models lacks or that have different types or shapes.
  std::vector<std::string> problems;
  std::vector<std::string> inputs;  ///< For example "image: f32[2, 1, 8, 8]", of the first run.
  /// The narrower ranges of synthetic integers without which the reference did not run; ranges from the options are not
  /// included.
  InputRanges narrowed;
  /// The inputs of VerifyOptions::large_integers that were large in a run.
  std::set<std::string, std::less<>> large_integers = {};
  /// The reason for unusual sizes of synthetic inputs, if the reference does not run with the usual ones.
  std::string why_sizes;
  std::size_t runs = 0;
  /// The results of find_unreached if the verdict is `same`.
  std::vector<std::string> unreached = {};
  std::optional<Dispute> dispute = {};  ///< If set, no output was compared.
  /// The CPU engines that ran the models: "ONNX Runtime 1.31.1". Like `left_out`, it is filled by the caller that chose
  /// the engine.
  std::string ran_in = {};
  /// CPU engines that were left out although they could run a model, with the reason, known faults of the engine that
  /// ran it, and how this engine rewrote the model.
  std::vector<std::string> left_out = {};
  [[nodiscard]] bool equal() const;
  /// Returns the verdict on all outputs. It is `nothing_compared` if nothing was compared of some output, or if there
  /// are no outputs.
  [[nodiscard]] Verdict verdict() const;
};

/// Runs two models on the same inputs and compares their outputs. An output that exceeds its tolerance is judged by the
/// noise floor of the reference, which is measured only then: how much rounding alone changes the reference on these
/// inputs.
///
/// Inputs and outputs are paired by name, and the remaining ones by order if both models have equally many. Sizes of
/// symbolic dimensions are tried from small to large until the reference runs. If the models differ and
/// Engine::checked() exists, the comparison is repeated with that engine. Throws Error if a model cannot run at all.
[[nodiscard]] VerifyReport verify_models(const runtime::Engine& engine, const onnx::Model& reference,
                                         const onnx::Model& candidate, const VerifyOptions& options = {});

}  // namespace graft::verify
