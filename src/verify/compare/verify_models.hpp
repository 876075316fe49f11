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

#include "graft/parts.hpp"
#include "graft/report/verify.hpp"
#include "graft/setting.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/compare.hpp"
#include "verify/compare/output_figures.hpp"
#include "verify/inputs/inputs.hpp"
#include "verify/judge/dispute.hpp"
#include "verify/judge/noise_floor.hpp"

namespace graft::verify {

using report::ComparedOutput;
using report::Verdict;
using report::VerifyReport;

/// The number of runs with synthetic inputs in verify_models if VerifyOptions::seeds is 0.
inline constexpr std::size_t usual_seeds = 3;

/// The inputs of `count` runs, of which sample(i) loads those of run i, by name.
struct DataSet {
  std::int64_t count = 0;
  std::function<runtime::TensorMap(std::int64_t)> sample = {};
};

/// The settings of verify_models and of compare_layers (in verify/localize/layers.hpp).
struct VerifyOptions {
  /// The number of runs with synthetic inputs, if the caller gives no data. 0 selects usual_seeds in verify_models, and
  /// 1 (2 if int8 is emulated) in compare_layers.
  std::size_t seeds = 0;
  /// Whether to add runs with inputs of zeros and of negative, large and small numbers, with another batch size. Used
  /// by verify_models only.
  bool edge_values = false;
  /// The inputs of each run, by name. An unknown name is an error.
  std::vector<runtime::TensorMap> data = {};
  DataSet data_set = {};  ///< The inputs of the runs in place of `data`, if there are too many for the memory.
  /// If set, other processes compare the outputs of the runs, each with compare_part(), and this function starts them.
  /// If empty, the calling process compares all runs. The report is the same in both cases. Used by verify_models only,
  /// with `data` or `data_set`.
  StartParts parts = {};
  std::map<std::string, std::int64_t, std::less<>> dims = {};  ///< Sizes of symbolic dimensions; see InputOptions.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes = {};  ///< Shapes by input; see InputOptions.
  InputRanges ranges = {};  ///< Ranges of synthetic inputs; see InputOptions.
  /// The names of inputs that have large integers in all runs except the first; see InputOptions.
  std::set<std::string, std::less<>> large_integers = {};
  /// Replaces the relative and absolute tolerance (network_tolerance, layer_tolerance, output_tolerance) and disables
  /// the noise floor. If only one of `relative` and `absolute` is set, the other one is 0.
  std::optional<double> relative = {};
  std::optional<double> absolute = {};
  /// Replaces the element tolerances of real outputs by a minimum signal-to-noise ratio in dB.
  std::optional<double> snr_db = {};
  runtime::OperatorKernels reference_kernels = runtime::OperatorKernels::functions;
  runtime::OperatorKernels candidate_kernels = runtime::OperatorKernels::functions;
  /// The class of each sample, in the order of the runs. If not empty, VerifyReport::accuracy is filled.
  std::vector<std::int64_t> labels = {};
  /// The outputs with the scores of a classifier; if empty, classifier_outputs() finds them.
  std::vector<std::string> judge_outputs = {};
  int threads = 0;  ///< Number of threads; see runtime::CompileOptions.
  /// Whether the models may come from different frameworks (compare_layers always assumes this). If the channel axis of
  /// an input is at another position in the candidate (NHWC, NCHW), the input and the corresponding outputs are
  /// transposed. An output that the other model computes only as an inner tensor is compared with that tensor.
  bool across_formats = false;
  /// Whether one model may be narrower than the other (f16 and f32) or quantized (compare_layers always assumes this).
  /// f16 and bf16 tensors are then rounded after the nodes that compute them, and outputs that depend on them have the
  /// tolerance of compare_layers.
  bool may_be_narrower = false;
  bool offers_ranges = true;     ///< Whether an error message may suggest to set `ranges`.
  bool finds_unreached = false;  ///< Whether to fill VerifyReport::unreached, for which the reference may run again.
  /// Whether to fill ComparedOutput::beyond_rounding, for which the reference may be compiled and run with noise.
  bool finds_beyond_rounding = false;
  /// Whether to compare the ONNX function of each operator of a loaded library with its CPU kernel, and to store the
  /// results in ComparedModels::own_definitions. For this the reference and single nodes run again. If a function and
  /// its kernel differ, the verdict is `different`.
  bool checks_definitions = false;
  /// The maximum total size, in bytes, of the tensors that compare_layers holds in memory at once. The models run once
  /// for each group of tensors of this size.
  std::int64_t memory = std::int64_t{1} << 30;
  /// The settings whose names messages use for `data` and `shapes`.
  Setting data_setting = Setting::data;
  Setting shapes_setting = Setting::synthetic_shapes;
  /// Called after each run, and by compare_layers after each step, with a description of the step, the number of steps
  /// done and the total number.
  std::function<void(const std::string& what, std::size_t done, std::size_t total)> progress = {};

  /// Returns whether the caller set the inputs of the runs, in `data` or `data_set`.
  [[nodiscard]] bool has_data() const { return !data.empty() || data_set.count != 0; }
  /// Returns the number of runs with the caller's inputs.
  [[nodiscard]] std::size_t run_count() const {
    return data.empty() ? static_cast<std::size_t>(data_set.count) : data.size();
  }
  /// Returns the caller's inputs of run number `run`, by name.
  [[nodiscard]] runtime::TensorMap inputs_of(std::size_t run) const {
    return data.empty() ? data_set.sample(static_cast<std::int64_t>(run)) : data[run];
  }

  /// Returns `run`, the options for the synthetic inputs of one run, with the sizes, shapes and ranges of these
  /// options.
  [[nodiscard]] InputOptions of_run(InputOptions run) const {
    run.dims = dims;
    run.shapes = shapes;
    run.ranges = ranges;
    run.offers_ranges = offers_ranges;
    return run;
  }
};

/// Sets the general members of a report: the files, whether the caller gave inputs, and whether only the candidate is
/// quantized.
void describe_comparison(report::ComparedModels& report, const onnx::Model& reference, const onnx::Model& candidate,
                         const VerifyOptions& options);

/// Runs two models on the same inputs, compares their outputs and returns a report. If an output exceeds its tolerance,
/// the noise floor of the reference is measured (how much rounding alone changes the reference on these inputs), and
/// the output may differ by a multiple of it.
///
/// Inputs and outputs are paired by name, and the remaining ones by order if both models have equally many. Sizes of
/// symbolic dimensions are tried from small to large until the reference runs. If the models differ and
/// Engine::checked() exists, the comparison is repeated with that engine. Does not set VerifyReport::ran_in, left_out
/// and without_own_kernels; the caller, which chose the engine, does. Throws Error if a model cannot run at all.
[[nodiscard]] VerifyReport verify_models(const runtime::Engine& engine, const onnx::Model& reference,
                                         const onnx::Model& candidate, const VerifyOptions& options = {});

/// Compares the outputs of a range of the runs with the caller's inputs, and returns the results as bytes for
/// VerifyOptions::parts in another process. That process repeats runs whose outputs exceed their tolerance, to measure
/// the noise floor, and runs that two engines dispute.
[[nodiscard]] std::string compare_part(const runtime::Engine& engine, const onnx::Model& reference,
                                       const onnx::Model& candidate, SampleRange runs, const VerifyOptions& options);

}  // namespace graft::verify
