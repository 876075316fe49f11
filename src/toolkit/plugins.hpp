// What is in plugin libraries, as the plugin registry of TensorRT sees it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
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

/// Both as the driver tells them: `tensorrt` has flavor, module and version; each library has its creators, each of
/// those its fields and, where they were asked for, its checks.
struct PluginsReport {
  nlohmann::ordered_json tensorrt;
  nlohmann::ordered_json libraries;
  bool conforms = true;  ///< Whether no check of any creator failed.
};

/// Opens the libraries in a process of its own.
[[nodiscard]] PluginsReport list_plugins(const PluginsRequest& request, const AskDriver& ask);

/// Adds a check to each creator of a report that has checks: whether an engine with the plugin builds, and says what
/// comes of all of them. The lean runtime builds nothing. Throws EngineError where TensorRT does not start; Cancelled.
void check_engines(PluginsReport& report, const PluginsRequest& request, const Watch& watch,
                   const TrialCallback& on_end = {});

}  // namespace graft::toolkit
