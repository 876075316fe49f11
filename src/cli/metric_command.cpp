// Inserts the path of the model into the command.
#include "cli/metric_command.hpp"

#include <string_view>

#include "cli/interrupts.hpp"
#include "core/shell_quoted.hpp"
#include "graft/toolkit/metric_command.hpp"

namespace graft::cli {
namespace {

constexpr std::string_view place = "{}";

std::string quoted(const std::string& text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+";
  if (text.find_first_not_of(plain) == std::string::npos) return text;
  return shell_quoted(text);
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

toolkit::Metric metric_of(const Console& console, const std::string& command) {
  return [&console, command](const toolkit::Model& model) {
    const DeferInterrupts defer;
    return toolkit::measure({.text = command,
                             .with_model = [&](const std::filesystem::path& file) { return with_model(command, file); },
                             .on_error = [&](std::string_view line) { console.detail(line); },
                             .cancel = interruption()},
                            model);
  };
}

}  // namespace graft::cli
