// Compares the outputs of two models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/verify.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/tensor.hpp"

namespace graft::toolkit {

using report::Verdict;

struct Range {
  double lowest = 0;
  double highest = 1;
};

struct VerifyOptions {
  /// Inputs, by the names of either model and in the layout of either; the first axis of each counts samples. Empty:
  /// synthetic inputs.
  Tensors data = {};
  /// Inputs without a copy, in place of `data`. A view without an owner has to outlive the result.
  TensorViews data_views = {};
  /// Number of runs with synthetic inputs. 0: verify runs 3; verify_layers runs 1, or 2 where int8 is emulated.
  std::size_t seeds = 0;
  Shapes shapes = {};  ///< Shapes of synthetic inputs, without a dynamic dimension.
  /// Ranges of synthetic inputs, by name; without one, a range that the first layers suggest.
  std::map<std::string, Range> ranges = {};
  /// Tolerance of each element, relative and absolute, in place of the tolerance for rounding errors. Where one is set,
  /// the other is 0 by default.
  std::optional<double> relative = {};
  std::optional<double> absolute = {};
  /// Minimum signal to noise ratio of each output in dB, in place of a tolerance: Error where both are set.
  std::optional<double> snr_db = {};
  /// Run the candidate's Graft operators by their own CPU kernels, in the types that it declares, instead of their ONNX
  /// functions. Throws Error for an operator whose library is not loaded and which therefore has no kernel.
  bool own_kernels = false;
  CpuEngine engine = CpuEngine::automatic;  ///< The engine that runs both models.
  Watch watch = {};
};

/// An output of the reference and the corresponding output of the candidate.
struct ComparedOutput {
  TensorRef reference;
  TensorRef candidate;
  Verdict verdict = Verdict::same;
  std::int64_t compared = 0;    ///< Number of finite elements in all runs.
  std::int64_t mismatched = 0;  ///< Number of elements outside the tolerance, in the worst run.
  /// Largest absolute difference, in the worst run; infinite or NaN where only one side is.
  double largest_absolute = 0;
  double largest_relative = 0;
  std::optional<double> snr_db;  ///< Signal to noise ratio of all runs; nothing where nothing differs.
  /// The transposition that maps one layout to the other, or why the outputs were not compared; mostly empty.
  std::string note;
};

struct Verification;

struct VerifyResult {
  Verdict verdict = Verdict::same;
  std::vector<ComparedOutput> outputs;  ///< The outputs, in the order of the reference.
  std::vector<std::string> problems;    ///< Inputs or outputs that one model lacks or that differ in type or shape.
  std::size_t runs = 0;
  std::string ran_in = {};  ///< The CPU engines that ran the models: "ONNX Runtime 1.31.1".
  /// Why a model did not run in the first choice of engines, known wrong results of the engine that ran it, and how
  /// this engine rewrote the model; mostly empty.
  std::vector<std::string> left_out = {};
  /// Where the verdict is `same`: differences that the inputs did not exercise, one sentence each. These are weights of
  /// the same name, type and shape that differ and on which no output depends in any run, and branches and loop bodies
  /// of the reference that no run executed. Mostly empty.
  std::vector<std::string> unreached = {};
  /// The engines that disagree, the first node where they do, and by how much; mostly empty.
  std::string dispute = {};
  /// ONNX's operators in the candidate that ran as ONNX defines them, not by Graft's kernels, and that TensorRT-RTX
  /// runs as plugins. Only with VerifyOptions::own_kernels.
  std::vector<std::string> without_own_kernels = {};
  std::shared_ptr<const Verification> details = {};  ///< Input of graft/toolkit/present.hpp.
};

/// Runs both models on the CPU on the same inputs and compares their outputs. The models may have different formats and
/// types: inputs and outputs are paired by name, then by order, and transposed where the channels are on another axis.
/// Throws Error where the reference does not run, and for data or shapes that fit neither model; Error (missing_tool)
/// in a build without a CPU engine; Cancelled. A candidate that differs does not throw.
[[nodiscard]] GRAFT_API VerifyResult verify(const Model& reference, const Model& candidate,
                                            const VerifyOptions& options = {});

}  // namespace graft::toolkit
