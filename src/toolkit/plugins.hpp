// What is in plugin libraries, as the plugin registry of TensorRT sees it.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "graft/toolkit/progress.hpp"
#include "toolkit/inspect.hpp"

namespace graft::toolkit {

/// Runs a command of the engine driver and returns its answer.
using AskDriver = std::function<nlohmann::ordered_json(const std::vector<std::string>& arguments)>;

struct PluginsRequest {
  std::vector<std::string> libraries;
  std::string tensorrt = "auto";  ///< Whose registry: "auto", "rtx", "full" or "lean".
  std::string time_limit;         ///< Seconds after which a library counts as hanging; empty: 120.
  bool check = false;             ///< Whether each creator and its plugin keep TensorRT's contract.
};

/// How many checks there are of all creators.
struct CheckCounts {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t left_out = 0;  ///< They could not be made.

  [[nodiscard]] std::size_t made() const { return passed + failed; }
  [[nodiscard]] std::size_t all() const { return made() + left_out; }
};

/// Counts the checks of one creator, as the driver tells them.
[[nodiscard]] inline CheckCounts count_checks(const nlohmann::ordered_json& creator) {
  CheckCounts counts;
  for (const nlohmann::ordered_json& check : creator["checks"]) {
    const std::string outcome = check.value("outcome", "");
    ++(outcome == "passed" ? counts.passed : outcome == "failed" ? counts.failed : counts.left_out);
  }
  return counts;
}

/// Both as the driver tells them: `tensorrt` has flavor, module and version; each library has its creators, each of
/// those its fields and, where they were asked for, its checks.
struct PluginsReport {
  nlohmann::ordered_json tensorrt;
  nlohmann::ordered_json libraries;
  CheckCounts checks;  ///< Of all creators, once they are made.

  /// Whether the libraries keep the contract as far as it is checked; nothing where a check was left out and none
  /// failed.
  [[nodiscard]] std::optional<bool> conforms() const {
    if (checks.failed != 0) return false;
    return checks.left_out == 0 ? std::optional(true) : std::nullopt;
  }
};

/// Opens the libraries in a process of its own.
[[nodiscard]] PluginsReport list_plugins(const PluginsRequest& request, const AskDriver& ask);

/// Adds a check to each creator of a report that has checks: whether an engine with the plugin builds, and says what
/// comes of all of them. The lean runtime builds nothing. Throws EngineError where TensorRT does not start; Cancelled.
void check_engines(PluginsReport& report, const PluginsRequest& request, const Watch& watch,
                   const TrialCallback& on_end = {});

}  // namespace graft::toolkit
