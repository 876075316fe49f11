// The whole program: its commands, and the options that they share.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "cli/options.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming)
class ParseError;
}  // namespace CLI

namespace graft::cli {

/// The exit codes of every command.
enum class Exit : int {
  done = 0,
  answer_is_no = 1,
  bad_input = 2,
  missing_tool = 3,
  internal = 4,
};

class Program {
 public:
  Program();

  /// Adds a command with --json, -v, -q and --help. `example` is shown below the help. `action` runs after parsing.
  Command* add_command(const std::string& name, const std::string& description, const std::string& example,
                       std::function<Exit(const Console&)> action);

  /// Adds --operators LIB, which may be given once for each library. The libraries are loaded before the command's
  /// action runs.
  void add_operators_option(Command& command);

  /// Sets the function `how`, which receives the words after the command's name and returns the words that are parsed
  /// instead. An Error that `how` throws ends the program like an Error of the command.
  void translate(const std::string& command, std::function<std::vector<std::string>(std::vector<std::string>)> how);

  /// Returns the definitions of all commands and their options.
  [[nodiscard]] const CLI::App& app() const { return *app_; }

  /// Parses the command line and runs the command. Every error becomes one message and an exit code.
  [[nodiscard]] int run(int argument_count, char** arguments);

 private:
  [[nodiscard]] int parse_failure(const CLI::ParseError& error) const;

  /// Throws Error if an option precedes the command that it belongs to.
  void check_command_comes_first(const std::vector<std::string>& words);
  /// Throws Error for a command that does not exist, also with --help.
  void check_command_is_known(const std::vector<std::string>& words);
  void parse(std::vector<std::string> words);

  std::shared_ptr<CLI::App> app_;
  std::deque<Command> commands_;
  std::map<std::string, std::function<std::vector<std::string>(std::vector<std::string>)>> translations_;
  Console console_;
  std::vector<std::string> words_;  ///< The command line after the program's name.
  std::vector<std::string> operator_libraries_;
  std::function<Exit(const Console&)> chosen_;
};

/// Adds a command with its options, help and action to the program: one function for each line of commands.inc.
#define GRAFT_COMMAND(name, report) void add_##name(Program& program);
#include "graft/report/commands.inc"
#undef GRAFT_COMMAND

}  // namespace graft::cli
