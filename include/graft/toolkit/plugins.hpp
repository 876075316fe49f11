// Lists the creators in plugin libraries, as TensorRT's plugin registry reports them, and checks their contract.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graft/report/plugins.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/inspect.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

using report::PluginsReport;

/// The options of list_plugins.
struct PluginsOptions {
  std::string tensorrt = "auto";  ///< The TensorRT whose registry is used: "auto", "rtx", "full" or "lean".
  double time_limit = 0;          ///< Seconds after which a library counts as hanging; 0 stands for 120.
  /// Whether to check that each creator and its plugin keep TensorRT's contract, and that an engine with the plugin
  /// builds. The lean runtime has no builder, so it leaves out the check of engines.
  bool check = false;
  LogCallback on_log = {};      ///< Called with every message of TensorRT. If empty, the report has the warnings.
  TrialCallback on_trial = {};  ///< Called after each build of a check.
  /// Called with each warning of PluginsReport::tensorrt_warnings before the builds of a check, which may fail.
  std::function<void(const std::string&)> on_warning = {};
  Watch watch = {};
};

/// Loads plugin libraries in a child process, in which a library may crash, and returns their creators. Loading a
/// library runs its code. A check that fails does not throw.
///
/// Throws EngineError, with the library and the cause, for a library that cannot be loaded, crashes or hangs; Error
/// (missing_tool) where Python or TensorRT is missing; Cancelled.
[[nodiscard]] GRAFT_API PluginsReport list_plugins(const std::vector<std::string>& libraries,
                                                   const PluginsOptions& options = {});

}  // namespace graft::toolkit
