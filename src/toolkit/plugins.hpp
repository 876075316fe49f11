// Lists the creators in plugin libraries, as TensorRT's plugin registry reports them, and checks their contract.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graft/report/plugins.hpp"
#include "graft/toolkit/inspect.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

/// Runs a command of the engine driver and returns its answer.
using AskDriver = std::function<nlohmann::json(const std::vector<std::string>& arguments)>;

/// Opens the libraries in a child process and returns their creators. Throws the errors of `ask`.
[[nodiscard]] report::PluginsReport list_plugins(const report::PluginsOptions& options, const AskDriver& ask);

/// Adds a check to each creator of a report with checks: whether an engine with the plugin builds. Counts all checks in
/// `report.checks`. With the lean runtime, which has no builder, no check is added. Throws EngineError where TensorRT
/// does not start; Cancelled.
void check_engines(report::PluginsReport& report, const report::PluginsOptions& options, const Watch& watch,
                   const TrialCallback& on_end = {});

}  // namespace graft::toolkit
