// graft completions: writes completion scripts for shells from the definitions of the commands.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "cli/console.hpp"
#include "cli/help.hpp"
#include "cli/program.hpp"
#include "core/shell_quoted.hpp"
#include "graft/report/program.hpp"
#include "present/json/fields.hpp"

namespace graft::cli {
namespace {

/// Returns the text with a backslash before each character of `special`.
std::string escaped(std::string_view text, std::string_view special) {
  std::string result;
  for (const char letter : text) {
    if (special.find(letter) != std::string_view::npos) result += '\\';
    result += letter;
  }
  return result;
}

/// Returns the allowed values of a command's arguments, or nothing if the arguments are files.
std::vector<std::string> argument_choices(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) return choices_of(*option);
  }
  return {};
}

std::vector<const CLI::Option*> named_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_positional(); });
}

bool takes_value(const CLI::Option& option) { return option.get_expected_max() != 0; }

/// Returns the script for bash. Values of options without choices are completed by bash itself as files, also after
/// NAME=.
std::string for_bash(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* command : commands_of(app)) {
    std::vector<std::string> options;
    std::string values;
    for (const CLI::Option* option : named_options(*command)) {
      const std::vector<std::string> names = spellings(*option);
      options.insert(options.end(), names.begin(), names.end());
      const std::vector<std::string> choices = choices_of(*option);
      if (choices.empty()) continue;
      values += fmt::format("        {}) choices='{}'", fmt::join(names, " | "), fmt::join(choices, " "));
      if (option->get_delimiter() != '\0') values += fmt::format(" separator={}", option->get_delimiter());
      values += " ;;\n";
    }
    if (!values.empty()) values = fmt::format("      case $previous in\n{}      esac\n", values);
    cases += fmt::format("    {})\n      options='{}'\n      arguments='{}'\n{}      ;;\n", command->get_name(),
                         fmt::join(options, " "), fmt::join(argument_choices(*command), " "), values);
  }
  std::vector<std::string> options;
  for (const CLI::Option* option : named_options(app)) {
    for (const std::string& name : spellings(*option)) options.push_back(name);
  }
  return fmt::format(R"(# Completes graft's commands in bash; written by `graft completions bash`.
_graft() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
  local options='{}' arguments='{}'
  local choices= separator= prefix=
  # '=' is a word of its own in bash.
  if [[ $current == '=' ]]; then
    current=
  elif [[ $previous == '=' ]]; then
    previous=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  if ((COMP_CWORD == 1)); then command=; fi
  case $command in
{}  esac
  if [[ -n $separator && $current == *"$separator"* ]]; then
    prefix=${{current%"$separator"*}}$separator
    current=${{current##*"$separator"}}
  fi
  if [[ -z $choices && $current == -* ]]; then
    choices=$options
  elif [[ -z $choices ]]; then
    choices=$arguments
  fi
  COMPREPLY=()
  if [[ -n $choices ]]; then mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$choices" -- "$current"); fi
}}
complete -o bashdefault -o default -F _graft graft
)",
                     fmt::join(options, " "), fmt::join(command_names(app), " "), cases);
}

/// Returns the specification of an option for zsh's _arguments.
std::string zsh_option(const CLI::Option& option) {
  const std::vector<std::string> names = spellings(option);
  const bool is_repeated = option.get_expected_max() > 1;
  std::string text = is_repeated        ? "'*'"
                     : names.size() > 1 ? fmt::format("'({})'", fmt::join(names, " "))
                                        : std::string();
  text += names.size() > 1 ? fmt::format("{{{}}}", fmt::join(names, ",")) : names.front();
  std::string rest = "[" + escaped(option.get_description(), "[]\\") + "]";
  if (takes_value(option)) {
    const std::vector<std::string> choices = choices_of(option);
    const std::string type = type_of(option).empty() ? "value" : type_of(option);
    const std::string list = fmt::format("{}", fmt::join(choices, " "));
    rest += fmt::format(":{}:", type);
    rest += choices.empty()                  ? "_files"
            : option.get_delimiter() != '\0' ? fmt::format("_values -s {} {} {}", option.get_delimiter(), type, list)
                                             : "(" + list + ")";
  }
  return text + shell_quoted(rest);
}

std::string for_zsh(const CLI::App& app) {
  std::string commands;
  std::string cases;
  for (const CLI::App* command : commands_of(app)) {
    const std::string described = command->get_name() + ":" + command->get_description();
    commands += fmt::format("        {}\n", shell_quoted(described));
    cases += fmt::format("        {})\n          _arguments", command->get_name());
    for (const CLI::Option* option : named_options(*command)) cases += " \\\n            " + zsh_option(*option);
    const std::vector<std::string> arguments = argument_choices(*command);
    cases += arguments.empty() ? " \\\n            '*:file:_files' ;;\n"
                               : fmt::format(" \\\n            '1:argument:({})' ;;\n", fmt::join(arguments, " "));
  }
  std::string options;
  for (const CLI::Option* option : named_options(app)) options += zsh_option(*option) + " ";
  return fmt::format(R"(#compdef graft
# Completes graft's commands in zsh; written by `graft completions zsh`.
_graft() {{
  local context state state_descr line
  typeset -A opt_args
  _arguments -C {}'1:command:->command' '*::argument:->argument'
  case $state in
    command)
      local -a commands=(
{}      )
      _describe command commands ;;
    argument)
      case $line[1] in
{}      esac ;;
  esac
}}
if [[ $funcstack[1] == _graft ]]; then _graft "$@"; else compdef _graft graft; fi
)",
                     options, commands, cases);
}

std::string fish_option(const CLI::Option& option, std::string_view condition) {
  std::string text = fmt::format("complete -c graft -n {}", condition);
  for (const std::string& name : option.get_snames()) text += " -s " + name;
  for (const std::string& name : option.get_lnames()) text += " -l " + name;
  const std::vector<std::string> choices = choices_of(option);
  const std::string list = fmt::format("{}", fmt::join(choices, " "));
  if (!choices.empty()) {
    text += option.get_delimiter() != '\0' ? fmt::format(" -x -a '(__fish_append {} {})'", option.get_delimiter(), list)
                                           : fmt::format(" -x -a '{}'", list);
  } else if (takes_value(option)) {
    text += " -r -F";
  }
  return text + " -d " + shell_quoted(escaped(option.get_description(), "\\"), "\\'") + "\n";
}

std::string for_fish(const CLI::App& app) {
  std::string text =
      "# Completes graft's commands in fish; written by `graft completions fish`.\n"
      "complete -c graft -f\n";
  for (const CLI::Option* option : named_options(app)) text += fish_option(*option, "__fish_use_subcommand");
  for (const CLI::App* command : commands_of(app)) {
    const std::string description = shell_quoted(escaped(command->get_description(), "\\"), "\\'");
    text += fmt::format("complete -c graft -n __fish_use_subcommand -a {} -d {}\n", command->get_name(), description);
    const std::string seen = fmt::format("'__fish_seen_subcommand_from {}'", command->get_name());
    const std::vector<std::string> arguments = argument_choices(*command);
    text += fmt::format("complete -c graft -n {}", seen);
    text += arguments.empty() ? " -F\n" : fmt::format(" -a '{}'\n", fmt::join(arguments, " "));
    for (const CLI::Option* option : named_options(*command)) text += fish_option(*option, seen);
  }
  return text;
}

}  // namespace

void add_completions(Program& program) {
  using Writer = std::string (*)(const CLI::App&);
  static const std::map<std::string, Writer> writers{{"bash", for_bash}, {"fish", for_fish}, {"zsh", for_zsh}};
  const auto shell = std::make_shared<std::string>();
  Command* command = program.add_command(
      "completions", "prints a script with which a shell completes graft's commands and options",
      "graft completions bash | install -D /dev/stdin ~/.local/share/bash-completion/completions/graft",
      [shell, &app = program.app()](const Console& console) {
        const report::CompletionsReport report{.shell = *shell, .script = writers.at(*shell)(app)};
        print_lines(console, report.script);
        console.result(present::json_of_report(report));
        return Exit::done;
      });
  command->add_option("SHELL", *shell, "bash, fish or zsh")->required()->check(one_of({"bash", "fish", "zsh"}));
}

}  // namespace graft::cli
