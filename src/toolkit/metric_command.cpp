// Runs the user's metric command through the shell.
#include "graft/toolkit/metric_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <optional>
#include <string_view>

#include "core/shell_quoted.hpp"
#include "engine/process.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/temporary_folder.hpp"
#include "toolkit/access.hpp"

namespace graft::toolkit {
namespace {

constexpr std::string_view blanks = " \t\r";

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

/// Returns a path without quotes if it has no characters that a shell interprets, so that {} may also be inside quotes.
std::string quoted(const std::string& text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+";
  if (text.find_first_not_of(plain) == std::string::npos) return text;
  return shell_quoted(text);
}

/// Returns the command for the shell with the model's path in place of every {}, or at the end if there is no {}.
std::string with_model(const std::string& command, const std::filesystem::path& model) {
  constexpr std::string_view place = "{}";
  const std::string name = quoted(model.string());
  if (command.find(place) == std::string::npos) return command + " " + name;
  std::string result = command;
  for (std::size_t at = result.find(place); at != std::string::npos; at = result.find(place, at + name.size())) {
    result.replace(at, place.size(), name);
  }
  return result;
}

/// Returns the end of a line for a message: at most 80 characters, which begin with "…" if the line is longer.
std::string end_of(const std::string& line) {
  constexpr std::size_t most = 80;
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  if (static_cast<std::size_t>(std::count_if(line.begin(), line.end(), begins_character)) <= most) return line;
  std::size_t begin = line.size();
  for (std::size_t characters = 0; begin > 0 && characters < most - 1;) {
    characters += begins_character(line[--begin]) ? 1 : 0;
  }
  return "…" + line.substr(begin);
}

/// The parts of the metric command's output that are kept: the result, and the last lines of standard error for a
/// message.
struct Said {
  std::string last;  ///< The last line of standard output that is not blank.
  std::deque<std::string> errors;

  void keep_error(std::string_view line) {
    constexpr std::size_t most = 10;
    errors.emplace_back(line);
    if (errors.size() > most) errors.pop_front();
  }
};

/// Returns the Error for a metric command that failed or printed no number.
Error failure(const MetricCommand& command, const std::string& what, const Said& said) {
  std::string message = fmt::format("{}: {}\nThe command was: {}", setting_name(Setting::metric), what, command.text);
  message += said.errors.empty() ? "\nIts standard error is empty" : "\nThe end of its standard error:";
  for (const std::string& line : said.errors) message += "\n" + line;
  return Error(message);
}

}  // namespace

double measure(const MetricCommand& command, const Model& model) {
  const onnx::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "model.onnx";
  onnx::write_onnx(model_of(model), path);
  Said said;
  const engine::ProcessResult ended =
      engine::run_process({"sh", "-c", with_model(command.text, path)}, {},
                          {.on_output =
                               [&](std::string_view line) {
                                 if (!trimmed(line).empty()) said.last = trimmed(line);
                               },
                           .on_error =
                               [&](std::string_view line) {
                                 if (command.on_error) command.on_error(line);
                                 said.keep_error(line);
                               },
                           .should_stop = [&] { return command.cancel.is_cancelled(); }});
  if (command.cancel.is_cancelled()) throw Cancelled();
  if (ended.signal != 0) throw failure(command, fmt::format("the command was ended by signal {}", ended.signal), said);
  if (ended.exit_code != 0)
    throw failure(command, fmt::format("the command ended with exit code {}", ended.exit_code), said);
  const std::optional<double> number = finite_number(said.last);
  if (number) return *number;
  throw failure(command,
                said.last.empty()
                    ? "the standard output of the command is empty; its last line must be a number"
                    : fmt::format("the last line of the command's standard output is '{}'; it must be a finite number",
                                  end_of(said.last)),
                said);
}

}  // namespace graft::toolkit
