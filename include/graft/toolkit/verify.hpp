// Whether two models compute the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/tensor.hpp"

namespace graft::toolkit {

enum class Verdict : std::uint8_t {
  same,
  different,
  nothing_compared,  ///< No output element was a finite number in both models, or they are random: that proves nothing.
  disputed,          ///< The CPU engines compute one of the models differently: that is no verdict on the models.
};

struct Range {
  double lowest = 0;
  double highest = 1;
};

struct VerifyOptions {
  /// Inputs to run with, by the names of either model and in the layout of either; the first axis of each counts
  /// samples. Empty: synthetic inputs.
  Tensors data = {};
  /// In place of `data`: the same without a copy. A view without an owner has to outlive the result.
  TensorViews data_views = {};
  std::size_t seeds = 0;                     ///< Runs with synthetic inputs. 0: 3; of all tensors 1 or 2.
  Shapes shapes = {};                        ///< Of synthetic inputs, without a dynamic dimension.
  std::map<std::string, Range> ranges = {};  ///< Of synthetic inputs; without one, what the first layers show.
  /// Tolerance of each element in place of what rounding explains; the one that is missing is 0.
  std::optional<double> relative = {};
  std::optional<double> absolute = {};
  /// Least signal to noise ratio of each output, in place of a tolerance: one of both is refused.
  std::optional<double> snr_db = {};
  /// Compute the candidate's Graft operators by their own CPU kernels, in the types that it declares, not as their ONNX
  /// functions. Error where the library of one is not loaded, so that there is no kernel.
  bool own_kernels = false;
  CpuEngine engine = CpuEngine::automatic;  ///< Runs both models.
  Watch watch = {};
};

/// Two outputs that belong together.
struct ComparedOutput {
  TensorRef reference;
  TensorRef candidate;
  Verdict verdict = Verdict::same;
  std::int64_t compared = 0;    ///< Finite elements of all runs.
  std::int64_t mismatched = 0;  ///< Elements outside the tolerance, of the worst run.
  double largest_absolute = 0;  ///< Difference, of the worst run; infinite or NaN where one side alone is.
  double largest_relative = 0;
  std::optional<double> snr_db;  ///< Of all runs; nothing where nothing differs.
  std::string note;  ///< How the outputs were brought together: a transposition between layouts; or why not.
};

struct Verification;

struct VerifyResult {
  Verdict verdict = Verdict::same;
  std::vector<ComparedOutput> outputs;  ///< In the order of the reference.
  std::vector<std::string> problems;    ///< Inputs or outputs that one of the models lacks, other types or shapes.
  std::size_t runs = 0;
  std::string ran_in = {};  ///< The CPU engines that ran the models: "ONNX Runtime 1.31.1".
  /// Why a model did not run in the engine that comes first, and what the engine that ran it is known to compute
  /// wrongly; mostly empty.
  std::vector<std::string> left_out = {};
  /// Where the verdict is `same`: differences that the inputs did not reach, a sentence for each. Weights of the same
  /// name, type and shape that differ and that no output depends on in any run; branches and loop bodies of the
  /// reference that no run executed. Mostly empty.
  std::vector<std::string> unreached = {};
  std::string dispute = {};  ///< Which engines disagree, first at which node, and by how much; mostly empty.
  /// With VerifyOptions::own_kernels: operators of ONNX's in the candidate that were computed as ONNX defines them, and
  /// not by Graft's kernels, which TensorRT-RTX runs as plugins.
  std::vector<std::string> without_own_kernels = {};
  std::shared_ptr<const Verification> details = {};  ///< For graft/toolkit/present.hpp.
};

/// Runs both models on the CPU on the same inputs. They may be of different formats and types: inputs and outputs are
/// paired by name, then by order, and transposed where the channels are in another place. Throws Error where the
/// reference does not run, for data or shapes that fit neither model, and (missing_tool) in a build without a CPU
/// engine; Cancelled. A candidate that differs is no error.
[[nodiscard]] GRAFT_API VerifyResult verify(const Model& reference, const Model& candidate,
                                            const VerifyOptions& options = {});

}  // namespace graft::toolkit
