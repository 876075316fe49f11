// Writes the page of `man graft`: the help of the program and of each command, in roff.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "cli/help.hpp"

namespace graft::cli {
namespace {

/// Escapes a text for roff, in which a backslash, a hyphen, and a period or apostrophe at the beginning of a line have
/// special meanings.
std::string roff(std::string_view text) {
  std::string safe;
  bool begins_line = true;
  for (const char letter : text) {
    if (begins_line && (letter == '.' || letter == '\'')) safe += "\\&";
    begins_line = letter == '\n';
    if (letter == '\\') {
      safe += "\\e";
    } else if (letter == '-') {
      safe += "\\-";
    } else {
      safe += letter;
    }
  }
  return safe;
}

std::string verbatim(std::string_view text) { return fmt::format(".nf\n{}\n.fi\n", roff(text)); }

std::string options_of(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    text += fmt::format(".TP\n.B {}\n{}\n", roff(option_text(*option)), roff(option->get_description()));
  }
  return text;
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string text = fmt::format(
      ".TH GRAFT 1 \"\" \"graft {}\" \"User Commands\"\n.SH NAME\ngraft \\- networks for TensorRT\n.SH SYNOPSIS\n.B "
      "graft\n"
      ".I COMMAND\n\\&...\n.SH DESCRIPTION\n{}\n.SH OPTIONS\n{}.SH COMMANDS\n",
      GRAFT_VERSION, roff(app.get_description()), options_of(app));
  for (const CLI::App* command : commands_of(app)) {
    const std::string called = "graft " + command->get_name();
    text += fmt::format(".SS {}\n{}\n.PP\n{}{}.PP\n{}", roff(called), roff(command->get_description()),
                        verbatim(usage(*command, called)), options_of(*command), verbatim(command->get_footer()));
  }
  return text + fmt::format(".SH NOTES\n{}", verbatim(app.get_footer()));
}

}  // namespace graft::cli
