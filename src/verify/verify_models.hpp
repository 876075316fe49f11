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

#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/compare.hpp"
#include "verify/dispute.hpp"
#include "verify/inputs.hpp"
#include "verify/noise_floor.hpp"
#include "verify/output_figures.hpp"
#include "verify/verdict.hpp"

namespace graft::verify {

struct VerifyOptions {
  std::size_t seeds = 3;     ///< Runs with synthetic inputs, where there is no data.
  bool edge_values = false;  ///< Then also zeros, negative, large and small numbers, with another batch.
  std::vector<runtime::TensorMap> data = {};  ///< Inputs to run with; a name that the models do not have is refused.
  std::map<std::string, std::int64_t, std::less<>> dims = {};                 ///< As in InputOptions.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes = {};  ///< As in InputOptions.
  InputRanges ranges = {};                                                    ///< As in InputOptions.
  std::set<std::string, std::less<>> large_integers = {};  ///< As in InputOptions, of all runs but the first.
  std::optional<double> relative =
      {};  ///< Instead of Tolerance::of_network of each output's type and the noise floor; the other one is then 0.
  std::optional<double> absolute = {};
  std::optional<double> snr_db = {};  ///< Of outputs that are real, instead of either.
  runtime::OperatorKernels reference_kernels = runtime::OperatorKernels::functions;
  runtime::OperatorKernels candidate_kernels = runtime::OperatorKernels::functions;
  int threads = 0;  ///< As in runtime::CompileOptions.
  /// The models may be of two formats: an input whose channels the candidate has in another place (NHWC, NCHW) is
  /// transposed for it, and then so is an output; an output that one of both only has as a tensor inside is found
  /// there.
  bool across_formats = false;
  /// One model may be narrower than the other (f16 against f32), or quantized: f16 and bf16 tensors are rounded where
  /// they are made, and what is computed from them has the tolerance that compare_layers gives it.
  bool may_be_narrower = false;
  bool finds_unreached = false;  ///< Fills VerifyReport::unreached, for which the reference may run once more.
  std::function<void(std::size_t done, std::size_t total)> progress = {};  ///< Called after each run.
};

struct OutputReport {
  std::string reference_name;
  std::string candidate_name;  ///< Differs where outputs were paired by order.
  std::string reference_type;  ///< "f32[2, 10]", of the worst run.
  std::string candidate_type;
  Tolerance tolerance;
  std::string why_tolerance;  ///< Where it is not that of the output's own type.
  Difference worst;           ///< Of the run that is furthest outside, or nearest to the limit.
  OutputFigures figures;      ///< Of all runs together.
  /// Of the worst run; nothing where the tolerance was enough, or was given.
  std::optional<NoiseFloor> floor;
  std::size_t worst_run = 0;
  std::size_t failed_runs = 0;
  std::size_t lost_runs = 0;  ///< Runs that only a floor which may not be relied on makes equal (is_lost_in_noise).
  std::string note;  ///< "transposed by [0, 2, 3, 1] ...", "a tensor inside the candidate, which does not return it".
  /// Why its numbers were not compared, only type and rank: they are random. Empty where they were.
  std::string not_compared;
  std::int64_t compared = 0;     ///< Finite elements that were compared, of all runs.
  bool is_always_empty = false;  ///< As the reference declares it.
  [[nodiscard]] bool equal() const { return failed_runs == 0; }
  [[nodiscard]] Verdict verdict() const {
    if (!equal()) return Verdict::different;
    return (compared == 0 && !is_always_empty) || is_lost_in_noise() ? Verdict::nothing_compared : Verdict::same;
  }
  [[nodiscard]] bool is_lost_in_noise() const { return equal() && graft::verify::is_lost_in_noise(worst, floor); }
};

struct VerifyReport {
  std::vector<OutputReport> outputs;  ///< In the order of the reference.
  std::vector<std::string> problems;  ///< Inputs or outputs that one of the models lacks, other types or shapes.
  std::vector<std::string> inputs;    ///< "image: f32[2, 1, 8, 8]", of the first run.
  InputRanges narrowed;               ///< Of synthetic integers, so that the reference runs; not those of the options.
  std::set<std::string, std::less<>> large_integers = {};  ///< Those of the options with which the reference runs.
  std::string why_sizes;  ///< Of synthetic inputs, where the reference does not run with the usual sizes.
  std::size_t runs = 0;
  /// Where the verdict is `same`: what find_unreached found.
  std::vector<std::string> unreached = {};
  std::optional<Dispute> dispute = {};  ///< Then nothing else says anything.
  /// The CPU engines that ran the models: "ONNX Runtime 1.31.1". Filled by whoever chose the engine, as `left_out` is.
  std::string ran_in = {};
  /// CPU engines that did not run a model though they could, why, and what the engine that did run it is known for.
  std::vector<std::string> left_out = {};
  [[nodiscard]] bool equal() const;
  /// Of all outputs: nothing was compared where that is so of one of them, and where there is none.
  [[nodiscard]] Verdict verdict() const;
};

/// An output that is further off than its tolerance is judged by the reference's own noise floor, which is measured
/// then: how far rounding alone takes the reference from itself on these inputs.
///
/// Outputs are paired by name; those left over by order, if as many are left on both sides. Inputs must agree by name,
/// or by order where no name does. Sizes for symbolic dimensions are tried from small to large until the reference
/// runs. A difference is looked for again by Engine::checked(), where there is such a one. Throws Error where a model
/// cannot run at all.
[[nodiscard]] VerifyReport verify_models(const runtime::Engine& engine, const onnx::Model& reference,
                                         const onnx::Model& candidate, const VerifyOptions& options = {});

}  // namespace graft::verify
