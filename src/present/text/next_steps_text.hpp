// The commands that come next, in words.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "inspect/next_steps.hpp"
#include "onnx/model.hpp"
#include "present/text/table.hpp"
#include "toolkit/build.hpp"
#include "toolkit/convert.hpp"
#include "toolkit/inspect.hpp"

namespace graft::present {

struct NextCommand {
  std::string command;  ///< Empty where no command helps.
  std::string why;
};

/// The commands name the model's file and files beside it.
[[nodiscard]] std::vector<NextCommand> next_commands(const toolkit::Inspection& inspection);

/// Returns the next steps after a conversion that was written whole: the build, and before it the comparison where
/// values differ or could not be compared.
[[nodiscard]] std::vector<NextCommand> next_commands(const toolkit::Conversion& conversion);

/// The command that compares the model before and after; empty where values were not compared.
[[nodiscard]] std::string verify_command(const toolkit::Conversion& conversion);

/// What compares the results of the user's own plugins in an engine, which no build does; nothing where it holds none.
[[nodiscard]] std::optional<NextCommand> canary_of_own_plugins(const toolkit::BuildReport& report,
                                                               const std::filesystem::path& model);

/// "next  graft convert ...": a row for each.
[[nodiscard]] Table next_table(const std::vector<NextCommand>& commands);

}  // namespace graft::present
