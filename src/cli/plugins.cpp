// graft plugins: the creators and fields in TensorRT plugin libraries, as a real plugin registry sees them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/engine_session.hpp"
#include "cli/program.hpp"

namespace graft::cli {
namespace {

struct Arguments {
  std::vector<std::string> libraries;
  std::string tensorrt = "auto";
  std::string time_limit;
};

std::string fields_text(const nlohmann::json& creator) {
  std::string text;
  for (const auto& field : creator["fields"]) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", field.value("name", ""), field.value("type", ""));
    if (field.value("length", 0) > 1) text += fmt::format("[{}]", field.value("length", 0));
  }
  return text.empty() ? "no fields" : text;
}

Exit plugins(const Console& console, const Arguments& arguments) {
  std::vector<std::string> question{"plugins"};
  question.insert(question.end(), arguments.libraries.begin(), arguments.libraries.end());
  question.insert(question.end(), {"--tensorrt", arguments.tensorrt});
  if (!arguments.time_limit.empty()) question.insert(question.end(), {"--time-limit", arguments.time_limit});
  const nlohmann::json answer = ask_engine_driver(console, question);
  std::size_t count = 0;
  Table table;
  for (const auto& library : answer["plugin_libraries"]) {
    for (const auto& creator : library["creators"]) {
      const std::string space = creator.value("namespace", "");
      table.add({{creator.value("name", ""), Colour::strong},
                 creator.value("version", ""),
                 {space.empty() ? "-" : space, Colour::faint},
                 creator.value("generation", ""),
                 fields_text(creator)});
      ++count;
    }
  }
  console.print(fmt::format("{}: {} in the registry of {}", fmt::join(arguments.libraries, ", "),
                            count_text(count, "creator"), tensorrt_text(answer["tensorrt"])));
  if (count != 0) {
    console.print();
    console.print(table);
  }
  console.result({{"tensorrt", answer["tensorrt"]}, {"plugin_libraries", answer["plugin_libraries"]}});
  return Exit::done;
}

}  // namespace

void add_plugins(Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_command(
      "plugins", "the creators and fields in any TensorRT plugin library, as a real plugin registry sees them",
      "graft plugins build/lib/libgraft_plugins.so", [arguments](const Console& c) { return plugins(c, *arguments); });
  command->add_option("LIBRARY", arguments->libraries, "shared libraries with TensorRT plugins")->required();
  command->add_option("--tensorrt", arguments->tensorrt, "whose registry: auto, rtx, full, lean (auto)")
      ->type_name("WHICH")
      ->check(CLI::IsMember({"auto", "rtx", "full", "lean"}));
  command->add_option("--time-limit", arguments->time_limit, "a library that takes longer counts as hanging (120)")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
}

}  // namespace graft::cli
