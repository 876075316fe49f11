// Compares the outputs of two models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graft/parts.hpp"
#include "graft/report/verify.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/data.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/tensor.hpp"

namespace graft::toolkit {

using report::ComparedOutput;
using report::Verdict;

struct Range {
  double lowest = 0;
  double highest = 1;
};

struct VerifyOptions {
  /// Inputs, by the names of either model and in the layout of either; the first axis of each counts samples. If empty,
  /// inputs are synthetic.
  Tensors data = {};
  /// Inputs without a copy, which replace `data`. A view without an owner has to outlive the result.
  TensorViews data_views = {};
  DataFiles data_files = {};  ///< Files of inputs, in place of `data`.
  /// Starts verify_part in other processes and returns the function that waits for their results. If set, these
  /// processes compare the outputs of the runs: the ranges that they receive must cover all runs exactly once. The
  /// report has the same bytes for every division into ranges. Allowed only for `verify` with data, and without
  /// `own_kernels`.
  StartParts parts = {};
  /// Number of runs with synthetic inputs. If 0, verify runs 3, and verify_layers runs 1, or 2 if int8 is
  /// emulated.
  std::size_t seeds = 0;
  Shapes shapes = {};  ///< Shapes of synthetic inputs, without a dynamic dimension.
  /// Ranges of synthetic inputs, by name. An input without a range has the range that the first layers suggest.
  std::map<std::string, Range> ranges = {};
  /// Tolerance of each element, relative and absolute, which replaces the tolerance for rounding errors. If only
  /// one of them is set, the other is 0.
  std::optional<double> relative = {};
  std::optional<double> absolute = {};
  /// Minimum signal-to-noise ratio of each output in dB, which replaces a tolerance. An Error if `relative` or
  /// `absolute` is set too.
  std::optional<double> snr_db = {};
  /// The outputs with the scores of a classifier, whose accuracy is measured with DataFiles::labels and whose top-1
  /// agreement is reported. If empty, they are found as for Int8Options::judge_outputs.
  std::vector<std::string> judge_outputs = {};
  /// Whether the candidate's Graft operators run by their own CPU kernels, in the types that it declares, instead of by
  /// their ONNX functions. Throws Error for an operator whose library is not loaded and which therefore has no kernel.
  bool own_kernels = false;
  CpuEngine engine = CpuEngine::automatic;  ///< The engine that runs both models.
  int threads = 0;                          ///< Number of threads of a run; 0 stands for the number of cores.
  Watch watch = {};
};

/// The files of a network in any format that `load` reads.
struct ModelFiles {
  std::filesystem::path model;            ///< The network: an ONNX file, or one that `load` imports.
  std::filesystem::path weights = {};     ///< The .caffemodel of a Caffe network.
  std::vector<std::string> outputs = {};  ///< See ImportOptions::outputs.
};

/// The models of a comparison.
struct ModelPair {
  Model reference;
  Model candidate;
};

/// Reads two models for a comparison with these options. A network of another format than ONNX is read with the shapes
/// of the options' data and `shapes`, or else with the shapes of the other model, because one of the two often has a
/// fixed batch and the other a dynamic one. Throws Error for options that `verify` refuses, and the errors of `load`.
[[nodiscard]] GRAFT_API ModelPair load_pair(const ModelFiles& reference, const ModelFiles& candidate,
                                            const VerifyOptions& options = {});

/// The report together with the candidate model, whose graph to_page (graft/toolkit/present.hpp) draws.
struct VerifyResult : report::VerifyReport {
  Model candidate = {};
};

/// Runs both models on the CPU on the same inputs and compares their outputs. The models may have different formats and
/// types: inputs and outputs are paired by name, then by order, and transposed where the channels are on another axis.
/// Throws Error where the reference does not run, and for data or shapes that fit neither model; Error (missing_tool)
/// in a build without a CPU engine; Cancelled. A candidate that differs does not throw.
[[nodiscard]] GRAFT_API VerifyResult verify(const Model& reference, const Model& candidate,
                                            const VerifyOptions& options = {});

/// Compares the outputs of some of the runs of `verify`, on behalf of another process, and returns the results as bytes
/// for VerifyOptions::parts. `options` are those of the other process. The process needs the same version of Graft and
/// the same files. Throws Error if the data are not sufficient for a run of the part, and as `verify` does.
[[nodiscard]] GRAFT_API std::string verify_part(const Model& reference, const Model& candidate, SampleRange runs,
                                                const VerifyOptions& options);

}  // namespace graft::toolkit
