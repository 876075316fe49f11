// The text of --help, and functions that read the definitions of the commands.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace graft::cli {

class Console;

/// The group of the options that every command has.
inline constexpr auto common_group = "common";

/// Formats the usage, arguments, options and example of a command, or the list of commands.
class HelpFormatter : public CLI::FormatterBase {
 public:
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

/// Returns an option with its value, "-o, --output FILE", or the name of an argument.
[[nodiscard]] std::string option_text(const CLI::Option& option);

/// Returns the usage of a command with the full name `name`: "graft convert MODEL [WEIGHTS] -o FILE [options]".
[[nodiscard]] std::string usage(const CLI::App& app, const std::string& name);

/// Returns the page for man of the program and its commands.
[[nodiscard]] std::string man_page(const CLI::App& app);

[[nodiscard]] std::vector<const CLI::App*> commands_of(const CLI::App& app);

[[nodiscard]] std::vector<std::string> command_names(const CLI::App& app);

/// Returns the spellings of an option, "-o" and "--output"; empty for an argument.
[[nodiscard]] std::vector<std::string> spellings(const CLI::Option& option);

/// Returns the name of an option's value: "FILE".
[[nodiscard]] std::string type_of(const CLI::Option& option);

/// Returns the allowed values of an option whose check allows only the words of a set; otherwise empty.
[[nodiscard]] std::vector<std::string> choices_of(const CLI::Option& option);

/// Prints a text of several lines unchanged; nothing with --json.
void print_lines(const Console& console, std::string_view text);

}  // namespace graft::cli
