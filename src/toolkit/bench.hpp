// Measures speed: of operators and of other implementations, in a Python process, and of a model on the CPU.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/report/bench.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

struct OperatorBench {
  std::string operators;                   ///< Names joined by commas, or "all".
  std::string device = "cuda";             ///< "cuda" or "cpu".
  std::string match = {};                  ///< Only cases whose name contains this.
  double time_limit = 0;                   ///< Seconds after which no further case begins; 0: no limit.
  std::optional<std::uint32_t> seed = {};  ///< Seed of random cases, which replace the listed cases.
  std::uint32_t cases = 0;                 ///< Number of random cases for each operator.
  bool peers = true;                       ///< False: only Graft's kernels are timed.
  LogCallback on_log = {};
};

/// Runs python/graft/bench. Throws Error for an operator that does not exist; Error (missing_tool) where libgraft_c.so
/// or Python is missing; Cancelled.
[[nodiscard]] report::OperatorTimes bench_operators(const OperatorBench& bench, const Watch& watch);

/// Runs a model on the CPU until the runs have taken `limit` seconds, at least 3 and at most 100 times. Throws Error
/// for a model that does not run on the CPU; Cancelled.
[[nodiscard]] report::ModelTimes time_model(const Model& given,
                                            const std::map<std::string, std::vector<std::int64_t>, std::less<>>& shapes,
                                            double limit, const Watch& watch);

}  // namespace graft::toolkit
