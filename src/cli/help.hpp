// The text of --help, and what else is told from the definitions of the commands.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace graft::cli {

class Console;

/// The option group of what every command has.
inline constexpr auto common_group = "common";

/// Usage, arguments, options and example of a command, or the list of commands.
class HelpFormatter : public CLI::FormatterBase {
 public:
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

/// "-o, --output FILE"; of an argument its name.
[[nodiscard]] std::string option_text(const CLI::Option& option);

/// "graft convert MODEL [WEIGHTS] -o FILE [options]", of a command that is called `name`.
[[nodiscard]] std::string usage(const CLI::App& app, const std::string& name);

/// The program and its commands as a page for man.
[[nodiscard]] std::string man_page(const CLI::App& app);

/// The commands of the program.
[[nodiscard]] std::vector<const CLI::App*> commands_of(const CLI::App& app);

/// Their names.
[[nodiscard]] std::vector<std::string> command_names(const CLI::App& app);

/// "-o", "--output"; nothing for an argument.
[[nodiscard]] std::vector<std::string> spellings(const CLI::Option& option);

/// "FILE": what an option's value is called.
[[nodiscard]] std::string type_of(const CLI::Option& option);

/// What a value may be, where the option's check allows the words of a set and nothing else.
[[nodiscard]] std::vector<std::string> choices_of(const CLI::Option& option);

/// A text of whole lines as it is; nothing with --json.
void print_lines(const Console& console, std::string_view text);

}  // namespace graft::cli
