// The commands that come next, in words.
#pragma once

#include <string>
#include <vector>

#include "inspect/next_steps.hpp"
#include "present/text/table.hpp"
#include "toolkit/inspect.hpp"

namespace graft::present {

struct NextCommand {
  std::string command;  ///< Empty where no command helps.
  std::string why;
};

/// The commands name the model's file and files beside it.
[[nodiscard]] std::vector<NextCommand> next_commands(const toolkit::Inspection& inspection);

/// "next  graft convert ...": a row for each.
[[nodiscard]] Table next_table(const std::vector<NextCommand>& commands);

}  // namespace graft::present
