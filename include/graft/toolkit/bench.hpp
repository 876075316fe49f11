// Measures speed: of operators and of other implementations, in a Python process, and of a model on the CPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graft/report/bench.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

using report::ModelTimes;
using report::OperatorTimes;

/// The options of bench_operators.
struct OperatorBench {
  std::string operators = "all";           ///< The names of the operators, joined by commas, or "all".
  std::string device = "cuda";             ///< The device of the kernels, "cuda" or "cpu".
  std::string match = {};                  ///< Times only the cases whose names contain this string.
  double time_limit = 0;                   ///< Seconds after which no further case begins; 0 sets no limit.
  std::optional<std::uint32_t> seed = {};  ///< Seed of random cases, which replace the listed cases.
  std::uint32_t cases = 60;                ///< Number of random cases for each operator.
  bool peers = true;                       ///< Whether PyTorch and other packages are timed too.
  LogCallback on_log = {};                 ///< Called with every message of the Python process.
  Watch watch = {};
};

/// Times operators, and the implementations of PyTorch and other packages that are installed, in a Python process.
/// Operators of loaded libraries are timed too. Throws Error for an operator that does not exist; Error (missing_tool)
/// where Python or the library with the kernels is missing; Cancelled.
[[nodiscard]] GRAFT_API OperatorTimes bench_operators(const OperatorBench& bench);

/// The options of bench_model.
struct ModelBench {
  Shapes shapes = {};     ///< Shapes of the synthetic inputs, without a dynamic dimension.
  double time_limit = 5;  ///< Seconds after which no further run begins; there are 3 to 100 runs.
  Watch watch = {};
};

/// Times a model on the CPU with synthetic inputs. Throws Error for shapes that do not fit the model and for a model
/// that does not run on the CPU; Error (missing_tool) in a build without a CPU engine; Cancelled.
[[nodiscard]] GRAFT_API ModelTimes bench_model(const Model& model, const ModelBench& bench = {});

}  // namespace graft::toolkit
