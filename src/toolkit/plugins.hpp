// The creators in plugin libraries, as TensorRT's plugin registry lists them, and checks of their contract.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/tensorrt.hpp"
#include "graft/toolkit/progress.hpp"
#include "toolkit/inspect.hpp"

namespace graft::toolkit {

/// Runs a command of the engine driver and returns its answer.
using AskDriver = std::function<nlohmann::ordered_json(const std::vector<std::string>& arguments)>;

struct PluginsRequest {
  std::vector<std::string> libraries;
  std::string tensorrt = "auto";  ///< The TensorRT whose registry is used: "auto", "rtx", "full" or "lean".
  std::string time_limit;         ///< Seconds after which a library counts as hanging; empty: 120.
  bool check = false;             ///< Check whether each creator and its plugin keep TensorRT's contract.
};

/// Numbers of checks by their outcome.
struct CheckCounts {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t left_out = 0;  ///< Number of checks that could not run.

  [[nodiscard]] std::size_t made() const { return passed + failed; }
  [[nodiscard]] std::size_t all() const { return made() + left_out; }
};

/// Counts the checks of a creator in the driver's result.
[[nodiscard]] inline CheckCounts count_checks(const nlohmann::ordered_json& creator) {
  CheckCounts counts;
  for (const nlohmann::ordered_json& check : creator["checks"]) {
    const std::string outcome = check.value("outcome", "");
    ++(outcome == "passed" ? counts.passed : outcome == "failed" ? counts.failed : counts.left_out);
  }
  return counts;
}

/// The driver's result: each library has its creators, and each creator its
/// fields and, with PluginsRequest::check, its checks.
struct PluginsReport {
  report::TensorRTIdentity tensorrt;  ///< The TensorRT whose registry was used.
  nlohmann::ordered_json libraries;
  CheckCounts checks;  ///< The checks of all creators; zero before check_engines.

  /// Whether the libraries keep the contract as far as it is checked; nothing where a check was left out and none
  /// failed.
  [[nodiscard]] std::optional<bool> conforms() const {
    if (checks.failed != 0) return false;
    return checks.left_out == 0 ? std::optional(true) : std::nullopt;
  }
};

/// Opens the libraries in a child process and returns their creators. Throws the errors of `ask`.
[[nodiscard]] PluginsReport list_plugins(const PluginsRequest& request, const AskDriver& ask);

/// Adds a check to each creator of a report with checks: whether an engine with the plugin builds. Counts all checks in
/// `report.checks`. With the lean runtime, which has no builder, no check is added. Throws EngineError where TensorRT
/// does not start; Cancelled.
void check_engines(PluginsReport& report, const PluginsRequest& request, const Watch& watch,
                   const TrialCallback& on_end = {});

}  // namespace graft::toolkit
