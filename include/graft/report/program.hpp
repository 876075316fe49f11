// The reports of commands about the program itself, and the report of an error.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "graft/report/field.hpp"

namespace graft::report {

/// The result of `help`.
struct HelpReport {
  std::string help;

  static constexpr Schema schema{"graft help", 1, "The text of the help."};
  static constexpr auto fields() { return std::tuple{field("help", &HelpReport::help, "The text of the help.")}; }
};

/// The result of `completions`.
struct CompletionsReport {
  std::string shell;
  std::string script;

  static constexpr Schema schema{"graft completions", 1, "The script that a shell reads."};
  static constexpr auto fields() {
    return std::tuple{field("shell", &CompletionsReport::shell, "'bash', 'zsh' or 'fish'."),
                      field("script", &CompletionsReport::script, "The script that the shell reads.")};
  }
};

/// The details of a failure. A failure in TensorRT's process has further facts, such as its kind and cause.
struct ErrorDetails {
  std::string kind;
  std::string message;
  std::optional<std::string> failure = {};
  std::optional<std::string> next_step = {};
  std::optional<std::string> library = {};
  std::optional<std::string> cause = {};
  std::optional<JsonText> facts = {};

  static constexpr auto fields() {
    return std::tuple{
        field("kind", &ErrorDetails::kind,
              "'answer_is_no' (exit code 1), 'bad_input' (2), 'missing_tool' (3) or 'internal' (4)."),
        field("message", &ErrorDetails::message, "The message."),
        field_if_any("failure", &ErrorDetails::failure, "The kind of the failure in TensorRT's process."),
        field_if_any("next_step", &ErrorDetails::next_step, "What to do next."),
        field_if_any("library", &ErrorDetails::library, "The plugin library that caused the failure."),
        field_if_any("cause", &ErrorDetails::cause,
                     "Why the library cannot be loaded: 'no_file', 'architecture', 'dependency' ..."),
        field_if_any("facts", &ErrorDetails::facts, "Further data from the engine driver."),
    };
  }
};

/// The report of an error. It is printed instead of the report of the command that fails.
struct ErrorReport {
  ErrorDetails error;

  static constexpr Schema schema{"any command that fails with exit code 2, 3 or 4", 1, "Printed instead of a result."};
  static constexpr auto fields() { return std::tuple{field("error", &ErrorReport::error, "What failed.")}; }
};

}  // namespace graft::report
