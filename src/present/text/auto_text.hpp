// The report of `graft auto` in words.
#pragma once

#include <string>
#include <vector>

#include "graft/report/auto.hpp"
#include "present/text/table.hpp"

namespace graft::present {

/// Returns the result of a step, with a line for each finding of a negative result; empty for a step that did not run.
[[nodiscard]] std::string found_text(const report::AutoReport& report, const report::AutoStep& step);

/// Returns a row for the result of a step that is not negative: "ok  12 nodes before, 9 after ...".
[[nodiscard]] Table step_table(const report::AutoReport& report, const report::AutoStep& step);

/// Returns the warnings of the function that the step called.
[[nodiscard]] std::vector<std::string> step_warnings(const report::AutoReport& report, const report::AutoStep& step);

/// Returns the GPUs of the engine and why: "sm120: --target names it".
[[nodiscard]] std::string targets_text(const report::AutoReport& report);

/// Returns a row for each check of the engine.
[[nodiscard]] Table checks_table(const report::AutoReport& report);

/// Returns the commands to run next: commands that explain a negative result and continue from there, and the command
/// that compares the results of the user's own plugins with the CPU.
[[nodiscard]] std::vector<report::NextCommand> next_commands(const report::AutoReport& report);

}  // namespace graft::present
