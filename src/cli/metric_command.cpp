// Runs it through the shell.
#include "cli/metric_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <optional>
#include <string_view>

#include "cli/interrupts.hpp"
#include "engine/process.hpp"
#include "engine/temporary_folder.hpp"
#include "graft/error.hpp"
#include "graph/onnx_io.hpp"
#include "present/text/shell_quoted.hpp"

namespace graft::cli {
namespace {

constexpr std::string_view place = "{}";
constexpr std::string_view blanks = " \t\r";

std::string quoted(const std::string& text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+";
  if (text.find_first_not_of(plain) == std::string::npos) return text;
  return present::shell_quoted(text);
}

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(blanks) + 1 - begin);
}

std::optional<double> finite_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// What a command said.
struct Said {
  std::string last;  ///< The last line of its standard output that is not blank.
  std::deque<std::string> errors;

  void keep_error(std::string_view line) {
    constexpr std::size_t most = 10;
    errors.emplace_back(line);
    if (errors.size() > most) errors.pop_front();
  }
};

/// The end of a metric that gave no number.
Error failure(const std::string& command, const std::string& what, const Said& said) {
  std::string message = fmt::format("--metric: {}\nThe command was: {}", what, command);
  message += said.errors.empty() ? "\nIt wrote nothing to standard error" : "\nThe end of its standard error:";
  for (const std::string& line : said.errors) message += "\n" + line;
  return Error(message);
}

}  // namespace

std::string with_model(const std::string& command, const std::filesystem::path& model) {
  const std::string name = quoted(model.string());
  if (command.find(place) == std::string::npos) return command + " " + name;
  std::string result = command;
  for (std::size_t at = result.find(place); at != std::string::npos; at = result.find(place, at + name.size())) {
    result.replace(at, place.size(), name);
  }
  return result;
}

double measure(const Console& console, const std::string& command, const Model& model) {
  const DeferInterrupts defer;
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "model.onnx";
  write_onnx(model, path);
  Said said;
  const ProcessResult ended = run_process({"sh", "-c", with_model(command, path)}, {},
                                          {.on_output =
                                               [&](std::string_view line) {
                                                 if (!trimmed(line).empty()) said.last = trimmed(line);
                                               },
                                           .on_error =
                                               [&](std::string_view line) {
                                                 console.detail(line);
                                                 said.keep_error(line);
                                               },
                                           .should_stop = interrupted});
  if (ended.signal != 0) throw failure(command, fmt::format("it was ended by signal {}", ended.signal), said);
  if (ended.exit_code != 0) throw failure(command, fmt::format("it ended with exit code {}", ended.exit_code), said);
  const std::optional<double> number = finite_number(said.last);
  if (number) return *number;
  constexpr std::size_t widest = 80;
  throw failure(command,
                said.last.empty()
                    ? "it printed nothing; the last line of its standard output has to be a number"
                    : fmt::format("the last line of its standard output is '{}', and has to be a finite number",
                                  shortened(said.last, widest)),
                said);
}

}  // namespace graft::cli
