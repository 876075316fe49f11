// The text of --help.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace graft::cli {

/// Usage, arguments, options and example of a command, or the list of commands.
class HelpFormatter : public CLI::FormatterBase {
 public:
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace graft::cli
