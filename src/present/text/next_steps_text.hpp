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
#include "toolkit/inspect.hpp"

namespace graft::present {

struct NextCommand {
  std::string command;  ///< Empty where no command helps.
  std::string why;
};

/// The commands name the model's file and files beside it.
[[nodiscard]] std::vector<NextCommand> next_commands(const toolkit::Inspection& inspection);

/// How a model is built that has operators of loaded libraries, which are named again; nothing where it has none.
[[nodiscard]] std::optional<NextCommand> build_with_operators(const onnx::Model& model,
                                                              const std::filesystem::path& file);

/// What compares the results of the user's own plugins in an engine, which no build does; nothing where it holds none.
[[nodiscard]] std::optional<NextCommand> canary_of_own_plugins(const toolkit::BuildReport& report,
                                                               const std::filesystem::path& model);

/// "next  graft convert ...": a row for each.
[[nodiscard]] Table next_table(const std::vector<NextCommand>& commands);

}  // namespace graft::present
