// The commands that a user runs next, in words.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/build.hpp"
#include "graft/report/convert.hpp"
#include "graft/report/inspect.hpp"
#include "graft/toolkit/commands.hpp"
#include "graft/toolkit/cut.hpp"
#include "present/text/table.hpp"

namespace graft::present {

using report::NextCommand;
using toolkit::library_options;

/// Returns the next steps after an inspection. The commands contain the path of the model and paths in the same folder.
[[nodiscard]] std::vector<NextCommand> next_commands(const report::InspectReport& report);

/// Returns the next steps after a conversion: the comparison if values differ or the budget did not allow it, and the
/// build if the conversion is complete.
[[nodiscard]] std::vector<NextCommand> next_commands(const report::ConvertReport& report);

/// Returns the next steps after a conversion whose result was cut: the build of the half for TensorRT, and the runs of
/// both halves; if values differ or a rule was not applied, only the comparison.
[[nodiscard]] std::vector<NextCommand> next_commands(const report::ConvertReport& report,
                                                     const toolkit::CutResult& cut);

/// Returns the `graft canary` command that compares the results of the user's own plugins with the CPU, which no build
/// does; nothing if the engine contains no such plugin.
[[nodiscard]] std::optional<NextCommand> canary_of_own_plugins(const report::BuildReport& report);

/// Returns rows for each command: "next  graft convert ..." and the reason.
[[nodiscard]] Table next_table(const std::vector<NextCommand>& commands);

}  // namespace graft::present
