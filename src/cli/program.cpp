// Parses the command line, runs the command, and converts errors to a message and an exit code.
#include "cli/program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/help.hpp"
#include "cli/interrupts.hpp"
#include "core/guide_pages.hpp"
#include "core/shell_quoted.hpp"
#include "core/suggest.hpp"
#include "graft/report/program.hpp"
#include "graft/toolkit/error.hpp"
#include "graft/toolkit/operators.hpp"
#include "present/json/fields.hpp"

namespace graft::cli {
namespace {

Exit exit_of(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::answer_is_no: return Exit::answer_is_no;
    case Error::Kind::bad_input: return Exit::bad_input;
    case Error::Kind::missing_tool: return Exit::missing_tool;
    case Error::Kind::internal: return Exit::internal;
  }
  return Exit::internal;
}

std::string_view name_of(Exit code) {
  switch (code) {
    case Exit::done: return "done";
    case Exit::answer_is_no: return "answer_is_no";
    case Exit::bad_input: return "bad_input";
    case Exit::missing_tool: return "missing_tool";
    case Exit::internal: return "internal";
  }
  return "internal";
}

/// Prints an error and returns its exit code. The JSON has `details` too, but not the hint.
int print_error(const Console& console, Exit code, const std::string& message, const std::string& hint = "",
                report::ErrorDetails details = {}) {
  console.error(message + hint);
  details.kind = name_of(code);
  details.message = message;
  console.result(present::json_of_report(report::ErrorReport{std::move(details)}));
  (void)std::fflush(stdout);
  return static_cast<int>(code);
}

/// Returns the facts about a failure in TensorRT's process, which docs/guide/plugin_not_found.md describes.
report::ErrorDetails details_of(const EngineFailure& failure) {
  const auto if_any = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  return {.kind = {},
          .message = {},
          .failure = failure.kind,
          .next_step = failure.next_step,
          .library = if_any(failure.library),
          .cause = if_any(failure.cause),
          .facts = report::JsonText{failure.facts}};
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// Returns "See `graft COMMAND --help`" on a line of its own for a bad_input error whose message names an option of the
/// command and has no second line. Returns an empty string for other errors, because the help does not explain the
/// contents of a model.
std::string hint_for(const Error& error, const CLI::App& app) {
  const std::string_view message = error.what();
  const auto parsed = app.get_subcommands();
  if (error.kind() != Error::Kind::bad_input || message.find('\n') != std::string_view::npos || parsed.empty())
    return "";
  const std::vector<std::string> options = option_names(*parsed.front());
  const bool names_option = std::any_of(options.begin(), options.end(), [&](const std::string& option) {
    return message.find(option) != std::string_view::npos;
  });
  return names_option ? fmt::format("\nSee `graft {} --help`", parsed.front()->get_name()) : "";
}

bool is_option_word(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

/// Returns whether a word is the name of an existing file, or begins with a single dash and ends in a file extension
/// that Graft reads, such as "-d.onnx".
bool names_file(const std::string& word) {
  std::error_code ignored;
  if (std::filesystem::exists(word, ignored)) return true;
  static constexpr auto extensions = std::to_array<std::string_view>(
      {".onnx", ".pb", ".pbtxt", ".prototxt", ".caffemodel", ".npz", ".npy", ".engine"});
  const bool is_short = word.size() > 1 && word[1] != '-' && word.find('=') == std::string::npos;
  return is_short && std::find(extensions.begin(), extensions.end(),
                               std::filesystem::path(word).extension().string()) != extensions.end();
}

/// Returns the option of the command with this letter, such as `v` for -v; null if the command has no such option.
const CLI::Option* short_option(const CLI::App& command, char letter) {
  return command.get_option_no_throw(std::string("-") + letter);
}

/// The words of a command line that begin with a dash. `left` are the words that CLI11 accepted neither as options nor
/// as arguments.
class DashedWords {
 public:
  DashedWords(const CLI::App& command, const std::vector<std::string>& words, std::vector<std::string> left)
      : command_(command),
        words_(words),
        left_(std::move(left)),
        end_of_options_(std::find(words.begin(), words.end(), "--")) {}

  /// Returns whether all words that CLI11 did not accept come after "--".
  [[nodiscard]] bool are_left_after_options() const {
    return std::none_of(words_.begin(), end_of_options_, [&](const std::string& word) { return is_left(word); });
  }

  /// Returns the first word after "--" that is an option, or null.
  [[nodiscard]] const std::string* late_option() const {
    return found(std::find_if(end_of_options_, words_.end(), [&](const std::string& word) {
      return is_option_word(word) && word != "--" && !is_file_after_options(word);
    }));
  }

  /// Returns the first word before "--" that is a file, or null.
  [[nodiscard]] const std::string* file() const {
    const auto first =
        std::find_if(words_.begin(), end_of_options_, [&](const std::string& word) { return is_file(word); });
    return first == end_of_options_ ? nullptr : &*first;
  }

  /// Returns the command with all files that begin with a dash written as "./-d.onnx", and without "--".
  [[nodiscard]] std::string corrected_command() const {
    std::string corrected = "graft";
    for (auto word = words_.begin(); word != words_.end(); ++word) {
      if (word == end_of_options_) continue;
      const bool rewrites = word < end_of_options_ ? is_file(*word) : is_file_after_options(*word);
      corrected += " " + shell_argument((rewrites ? "./" : "") + *word);
    }
    return corrected;
  }

 private:
  using Place = std::vector<std::string>::const_iterator;

  [[nodiscard]] const std::string* found(Place place) const { return place == words_.end() ? nullptr : &*place; }

  /// Returns whether CLI11 did not accept the word or its last part: CLI11 splits "-v.onnx" into the flag -v and the
  /// rest "-.onnx".
  [[nodiscard]] bool is_left(const std::string& word) const {
    return std::any_of(left_.begin(), left_.end(), [&](const std::string& left) {
      if (word == left) return true;
      if (!is_option_word(word) || !is_option_word(left) || !word.ends_with(left.substr(1))) return false;
      const std::string flags = word.substr(1, word.size() - left.size());
      return std::all_of(flags.begin(), flags.end(), [&](char letter) {
        const CLI::Option* option = short_option(command_, letter);
        return option != nullptr && option->get_items_expected_max() == 0;
      });
    });
  }

  [[nodiscard]] bool is_file(const std::string& word) const {
    return is_option_word(word) && is_left(word) && names_file(word);
  }

  [[nodiscard]] bool is_file_after_options(const std::string& word) const {
    if (!is_option_word(word) || !names_file(word)) return false;
    const CLI::Option* option = short_option(command_, word[1]);
    std::error_code ignored;
    return option == nullptr || option->get_items_expected_max() == 0 || std::filesystem::exists(word, ignored);
  }

  const CLI::App& command_;
  const std::vector<std::string>& words_;
  std::vector<std::string> left_;
  Place end_of_options_;
};

}  // namespace

Program::Program()
    : app_(std::make_shared<CLI::App>(
          "Rewrites networks so that TensorRT can run them, and proves that their results do not change.", "graft")) {
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->set_help_flag("-h,--help", "show this help");
  app_->set_version_flag("--version", "graft " GRAFT_VERSION, "show the version");
  app_->require_subcommand(1);
  app_->footer(
      "Every command has --help with an example, and --json.\nExit codes: 0 success; 1 completed with a negative "
      "result; 2 wrong usage or bad input; 3 a tool is missing, and the\nmessage has the command that installs it; 4 a "
      "defect of Graft.");
}

Command* Program::add_command(const std::string& name, const std::string& description, const std::string& example,
                              std::function<Exit(const Console&)> action) {
  CLI::App* command = app_->add_subcommand(name, description);
  command->formatter(std::make_shared<HelpFormatter>());
  command->set_help_flag("-h,--help", "show this help")->group(common_group);
  command->footer("Example\n  " + example);
  command->add_flag("--json", console_.json, "print the result as JSON on standard output")->group(common_group);
  command->add_flag("-v,--verbose", console_.verbose, "print more details on standard error")->group(common_group);
  command->add_flag("-q,--quiet", console_.quiet, "print only errors and requested lists")->group(common_group);
  command->callback([this, action = std::move(action)] { chosen_ = action; });
  return &commands_.emplace_back(*command);
}

int Program::parse_failure(const CLI::ParseError& error) const {
  const auto parsed = app_->get_subcommands();
  const CLI::App& where = parsed.empty() ? *app_ : *parsed.front();
  const std::string name = parsed.empty() ? "graft" : "graft " + where.get_name();
  const std::string help = fmt::format("`{} --help` shows the usage", name);

  const std::vector<std::string> rest = app_->remaining(true);
  if (rest.empty()) {
    if (parsed.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
      (void)std::fputs(app_->help().c_str(), stderr);
      return static_cast<int>(Exit::bad_input);
    }
    return print_error(console_, Exit::bad_input, fmt::format("{}: {}\n{}", name, error.what(), help));
  }
  if (!parsed.empty()) {
    const DashedWords dashed(where, words_, rest);
    if (const std::string* late = dashed.late_option(); late != nullptr && dashed.are_left_after_options()) {
      return print_error(console_, Exit::bad_input,
                         fmt::format("{}: {} comes after --, where no word is an option\nWrite `{}`", name, *late,
                                     dashed.corrected_command()));
    }
    if (const std::string* file = dashed.file()) {
      return print_error(
          console_, Exit::bad_input,
          fmt::format("{}: {} begins with a dash, as options do; a file of this name is ./{}\nWrite `{}`", name, *file,
                      *file, dashed.corrected_command()));
    }
  }
  // Without a command, its options are unknown too. The first word is reported as the wrong one.
  const auto option = parsed.empty() ? rest.begin() : std::find_if(rest.begin(), rest.end(), is_option_word);
  const std::string wrong = option == rest.end() ? rest.front() : option->substr(0, option->find('='));
  const bool is_option = is_option_word(wrong);
  const auto meant = nearest(wrong, is_option ? option_names(where) : command_names(where));
  const std::string what = is_option        ? "there is no option"
                           : parsed.empty() ? "there is no command"
                                            : "one argument too many:";
  return print_error(
      console_, Exit::bad_input,
      fmt::format("{}: {} {}\n{}", name, what, wrong, meant ? fmt::format("Did you mean {}?", *meant) : help));
}

void Program::add_operators_option(Command& command) {
  command
      .add_option("--operators", operator_libraries_,
                  "shared library with operators of your own (see " + guide_page("add_an_operator") +
                      "); repeatable. Loading "
                      "it runs its code")
      ->type_name("LIB");
}

void Program::translate(const std::string& command,
                        std::function<std::vector<std::string>(std::vector<std::string>)> how) {
  translations_[command] = std::move(how);
}

void Program::check_command_comes_first(const std::vector<std::string>& words) {
  if (words.empty() || !is_option_word(words.front())) return;
  const std::vector<std::string> own = option_names(*app_);
  if (words.front() == "-h" || std::find(own.begin(), own.end(), words.front()) != own.end()) return;
  const std::vector<std::string> commands = command_names(*app_);
  const auto command = std::find_first_of(words.begin(), words.end(), commands.begin(), commands.end());
  if (command == words.end()) return;
  console_.json = std::find(words.begin(), words.end(), "--json") != words.end();
  throw Error(fmt::format("graft: {} comes before the command\nWrite options after it: graft {} {} ...", words.front(),
                          *command, words.front()));
}

void Program::check_command_is_known(const std::vector<std::string>& words) {
  if (words.empty() || is_option_word(words.front())) return;
  const std::vector<std::string> commands = command_names(*app_);
  if (std::find(commands.begin(), commands.end(), words.front()) != commands.end()) return;
  console_.json = std::find(words.begin(), words.end(), "--json") != words.end();
  const auto meant = nearest(words.front(), commands);
  throw Error(fmt::format("graft: there is no command {}\n{}", words.front(),
                          meant ? fmt::format("Did you mean {}?", *meant) : "`graft --help` shows the usage"));
}

void Program::parse(std::vector<std::string> words) {
  words_ = words;
  console_.command_line = "graft";
  for (const std::string& word : words) console_.command_line += " " + shell_argument(word);
  // Without this, CLI11 takes every following word, even the model, as a further value of a repeatable option.
  for (CLI::App* command : app_->get_subcommands([](const CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      if (!option->get_positional()) option->allow_extra_args(false);
    }
  }
  check_command_comes_first(words);
  check_command_is_known(words);
  const auto found = words.empty() ? translations_.end() : translations_.find(words.front());
  if (found != translations_.end()) {
    // An error of the translation is reported in the same form as an error of the command.
    console_.json = std::find(words.begin(), words.end(), "--json") != words.end();
    std::vector<std::string> translated = found->second({words.begin() + 1, words.end()});
    translated.insert(translated.begin(), words.front());
    words = std::move(translated);
  }
  std::reverse(words.begin(), words.end());  // CLI11 expects the last word first
  app_->parse(std::move(words));
}

int Program::run(int argument_count, char** arguments) {
  try {
    parse({arguments + 1, arguments + argument_count});
  } catch (const Error& error) {
    return print_error(console_, exit_of(error.kind()), error.what());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);  // --help, --version
    return parse_failure(error);
  }
  try {
    install_interrupt_handlers();
    for (const std::string& library : operator_libraries_) static_cast<void>(toolkit::load_operators(library));
    const Exit code = chosen_(console_);
    console_.finish();
    return static_cast<int>(code);
  } catch (const EngineError& error) {
    return print_error(console_, exit_of(error.kind()), error.what(), "", details_of(error.failure()));
  } catch (const Error& error) {
    return print_error(console_, exit_of(error.kind()), error.what(), hint_for(error, *app_));
  } catch (const std::bad_alloc&) {
    return print_error(console_, Exit::bad_input,
                       "not enough memory\nUse a machine with more memory, or a smaller model");
  } catch (const std::exception& error) {
    return print_error(console_, Exit::internal,
                       fmt::format("{}\nThis is a defect of Graft: please report it", error.what()));
  } catch (...) {
    // Exceptions of interrupted work do not reach this line, because DeferInterrupts has ended the program before.
    return static_cast<int>(Exit::internal);
  }
}

}  // namespace graft::cli
