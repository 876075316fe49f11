// Speed: of operators beside other implementations, through a process of Python's, and of a model on the CPU.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "toolkit/engine_driver.hpp"

namespace graft::toolkit {

struct OperatorBench {
  std::string operators;                   ///< Names joined by commas, or "all".
  std::string device = "cuda";             ///< "cuda" or "cpu".
  std::string match = {};                  ///< Only cases whose name contains this.
  double time_limit = 0;                   ///< Begin nothing new after so many seconds; 0: no limit.
  std::optional<std::uint32_t> seed = {};  ///< Random problems in place of the listed ones.
  std::uint32_t cases = 0;                 ///< Of these, for each operator.
  bool peers = true;                       ///< False: Graft's kernels alone.
  DriverListener listener = {};
};

/// Returns the result event of python/graft/bench (its README lists the members). Throws Error for an operator that
/// does not exist, (missing_tool) where libgraft_c.so or Python is not there; Cancelled.
[[nodiscard]] nlohmann::json bench_operators(const OperatorBench& bench, const Watch& watch);

struct ModelTimes {
  std::vector<double> seconds;                              ///< Of each run, in their order; at least one.
  std::map<std::string, std::vector<std::int64_t>> shapes;  ///< Of the inputs, which are synthetic.
  std::string why_sizes;                                    ///< As in VerifyReport.

  [[nodiscard]] double median() const;
  [[nodiscard]] double fastest() const;
  [[nodiscard]] double slowest() const;
};

/// Runs a model on the CPU until `limit` seconds are over, 3 times at least and 100 times at most.
[[nodiscard]] ModelTimes time_model(const Model& given,
                                    const std::map<std::string, std::vector<std::int64_t>, std::less<>>& shapes,
                                    double limit, const Watch& watch);

}  // namespace graft::toolkit
