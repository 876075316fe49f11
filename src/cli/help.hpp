// The text of --help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace graft::cli {

/// The option group of what every command has.
inline constexpr auto common_group = "common";

/// Usage, arguments, options and example of a command, or the list of commands.
class HelpFormatter : public CLI::FormatterBase {
 public:
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace graft::cli
