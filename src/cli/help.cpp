// Formats --help: the description, the usage, options in two columns, and an example.
#include "cli/help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "cli/console.hpp"
#include "cli/program.hpp"
#include "core/suggest.hpp"
#include "graft/report/program.hpp"
#include "present/json/fields.hpp"

namespace graft::cli {
namespace {

constexpr std::size_t help_width = 110;

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

/// Returns a check that allows the names of the program's commands.
Check is_command(const CLI::App& app) {
  const std::vector<std::string> names = command_names(app);
  const std::string set = fmt::format("{{{}}}", fmt::join(names, ","));
  return {.fault =
              [names](const std::string& word) {
                if (std::find(names.begin(), names.end(), word) != names.end()) return std::string();
                const auto meant = nearest(word, names);
                return fmt::format("there is no command {}{}", word,
                                   meant ? fmt::format("; did you mean {}?", *meant) : "");
              },
          .type = "command",
          .allowed = set};
}

}  // namespace

std::string option_text(const CLI::Option& option) {
  std::string names = fmt::format("{}", fmt::join(spellings(option), ", "));
  if (names.empty()) return option.get_option_text().empty() ? option.get_name(true) : option.get_option_text();
  if (option.get_expected_max() != 0 && !type_of(option).empty()) names += " " + type_of(option);
  return names;
}

std::string usage(const CLI::App& app, const std::string& name) {
  std::string text = name;
  bool has_options = false;
  for (const CLI::Option* option : app.get_options()) {
    const bool many = option->get_expected_max() > 1;
    if (option->get_positional()) {
      const std::string& text_instead = option->get_option_text();
      const std::string positional =
          !text_instead.empty() ? text_instead : option->get_name(true) + (many ? "..." : "");
      text += option->get_required() ? " " + positional : " [" + positional + "]";
    } else if (option->get_required()) {
      const auto& letters = option->get_snames();
      const std::string shown = letters.empty() ? "--" + option->get_lnames().front() : "-" + letters.front();
      text += fmt::format(" {} {}", shown, type_of(*option));
    } else {
      has_options = true;
    }
  }
  return has_options ? text + " [options]" : text;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

void print_lines(const Console& console, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    console.print(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

// CLI11 appends the allowed values to the name of the type. They are removed, because the description explains them.
std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find(":{");
  if (begin == std::string::npos || type.back() != '}') return {};
  return CLI::detail::split(type.substr(begin + 2, type.size() - begin - 3), ',');
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/, CLI::AppFormatMode /*mode*/) const {
  const std::string called = full_name(*app);
  const std::vector<const CLI::App*> commands = commands_of(*app);
  std::string description = app->get_description();
  if (!description.empty())
    description[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(description[0])));
  std::string text;
  for (const std::string& line : wrap(description, help_width)) text += line + "\n";
  text += fmt::format("\n  {}\n", commands.empty() ? usage(*app, called) : called + " COMMAND ...");

  Table listed;
  for (const CLI::App* command : commands) listed.add({command->get_name(), command->get_description()});
  Table arguments;
  Table options;
  Table common;  // the options of every command are listed last
  for (const CLI::Option* option : app->get_options()) {
    const bool is_common = option->get_group() == common_group;
    (option->get_positional() ? arguments
     : is_common              ? common
                              : options)
        .add({option_text(*option), option->get_description()});
  }
  options.append(common);
  for (const auto& [title, table] :
       {std::pair{"Commands", &listed}, {"Arguments", &arguments}, {"Options", &options}}) {
    if (!table->empty()) text += fmt::format("\n{}\n{}", title, table->text(false, help_width));
  }
  if (!app->get_footer().empty()) text += "\n" + app->get_footer() + "\n";
  return text;
}

void add_help(Program& program) {
  const auto name = std::make_shared<std::string>();
  const auto man = std::make_shared<bool>(false);
  const CLI::App& app = program.app();
  Command* command = program.add_command(
      "help", "prints the --help text of graft or of a command", "graft help convert",
      [name, man, &app](const Console& console) {
        const CLI::App& subject = name->empty() ? app : *app.get_subcommand(*name);
        const report::HelpReport report{*man ? man_page(app)
                                             : HelpFormatter().make_help(&subject, "", CLI::AppFormatMode::Normal)};
        print_lines(console, report.help);
        console.result(present::json_of_report(report));
        return Exit::done;
      });
  const Option* of_command =
      command->add_option("COMMAND", *name, "a command; by default all commands are listed")->check(is_command(app));
  command->add_flag("--man", *man, "print a man page of all commands, in roff format")->excludes(of_command);
}

}  // namespace graft::cli
