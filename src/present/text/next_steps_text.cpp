// What is converted is called after the model: model.graft.onnx.
#include "present/text/next_steps_text.hpp"

#include <fmt/format.h>

#include "present/text/shell_quoted.hpp"

namespace graft::present {
namespace {

using Kind = inspect::NextStep::Kind;

/// Only where a shell would not take it as it is.
std::string argument(const std::string& text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+@%:,";
  return !text.empty() && text.find_first_not_of(plain) == std::string::npos ? text : shell_quoted(text);
}

NextCommand command_of(const inspect::NextStep& step, const toolkit::Inspection& inspection) {
  const std::filesystem::path& model = inspection.file;
  const bool is_converted = inspection.is_converted;
  const std::string for_release =
      inspection.release ? fmt::format(" --for {}", inspect::name_of(*inspection.release)) : "";
  const std::string file = argument(model.string());
  const std::string converted = argument((model.parent_path() / model.stem()).string() + ".graft.onnx");
  const std::string nodes = count_text(step.nodes, "node");
  switch (step.kind) {
    case Kind::correct: return {"", fmt::format("{} with a fault: correct the program that wrote the model", nodes)};
    case Kind::convert:
      return {fmt::format("graft convert {} -o {}{}", file, converted, for_release),
              fmt::format("{} to rewrite, or for a plugin", nodes)};
    case Kind::guard:
      return {fmt::format("graft convert {} -o {}{}", file, converted, for_release),
              fmt::format("{} that this release computes wrongly become{} others", nodes, step.nodes == 1 ? "s" : "")};
    case Kind::cut:
      return {fmt::format("graft convert {} -o {} --cut{}", file, converted, for_release),
              fmt::format("TensorRT runs the rest, and {} that it does not run stay{} on the host", nodes,
                          step.nodes == 1 ? "s" : "")};
    case Kind::probe:
      return {fmt::format("graft inspect {}{} --probe builder", file, is_converted ? " --convert" : ""),
              fmt::format("{} of which only TensorRT can tell", nodes)};
    case Kind::build:
      return {is_converted ? fmt::format("graft convert {} -o {}{}", file, converted, for_release)
                           : fmt::format("graft build {} -o {}.engine", file,
                                         argument((model.parent_path() / model.stem()).string())),
              "nothing is in the way"};
  }
  return {};
}

}  // namespace

std::vector<NextCommand> next_commands(const toolkit::Inspection& inspection) {
  std::vector<NextCommand> commands;
  for (const inspect::NextStep& step : inspect::next_steps(inspection.nodes, inspection.is_converted)) {
    commands.push_back(command_of(step, inspection));
  }
  return commands;
}

Table next_table(const std::vector<NextCommand>& commands) {
  Table table(0);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const NextCommand& next = commands[i];
    // Not the last cell of its row, which would be broken at the width of the terminal.
    table.add({i == 0 ? "next" : "", {next.command, Color::strong}, ""});
    table.add({"", {next.why, Color::faint}});
  }
  return table;
}

}  // namespace graft::present
