// Engines, through the engine driver.
#include "graft/toolkit/build.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "engine/driver.hpp"
#include "engine/engine_session.hpp"
#include "engine/plugin_nodes.hpp"
#include "engine/temporary_folder.hpp"
#include "graph/check_operators.hpp"
#include "graph/functions.hpp"
#include "graph/onnx_io.hpp"
#include "toolkit/access.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {
namespace {

std::string text_of(const std::map<std::string, ShapeRange>::value_type& shape) {
  const auto& [name, range] = shape;
  return fmt::format("{}={}..{}..{}", name, fmt::join(range.smallest, "x"), fmt::join(range.usual, "x"),
                     fmt::join(range.largest, "x"));
}

std::vector<std::string> command_of(const std::string& model, const std::filesystem::path& engine,
                                    const BuildOptions& options, const std::vector<std::string>& libraries) {
  std::vector<std::string> command{"build", model, "--output", engine.string(), "--tensorrt", options.tensorrt};
  for (const std::string& target : options.targets) command.insert(command.end(), {"--target", target});
  for (const auto& shape : options.shapes) command.insert(command.end(), {"--shapes", text_of(shape)});
  for (const std::string& library : libraries) command.insert(command.end(), {"--plugin-library", library});
  return command;
}

BuildResult result_of(const EngineAnswer& answer) {
  const nlohmann::json& built = answer.result;
  const nlohmann::json& tensorrt = built.at("tensorrt");
  const nlohmann::json& network = built.at("network");
  BuildResult result{.bytes = built.value("bytes", std::uint64_t{0}),
                     .seconds = built.value("seconds", 0.0),
                     .tensorrt = tensorrt_text(tensorrt.value("flavor", ""), tensorrt.value("version", "")),
                     .targets = built.value("targets", std::vector<std::string>()),
                     .layers = network.value("layer_count", std::size_t{0}),
                     .plugins = {},
                     .warnings = answer.warnings};
  for (const auto& plugin : network.at("plugins")) {
    result.plugins.push_back({.node = plugin.value("layer", ""),
                              .plugin = plugin.value("name", ""),
                              .version = plugin.value("version", "")});
  }
  return result;
}

EngineAnswer ask(Work& work, const std::vector<std::string>& command, const Renamings& renamings) {
  try {
    return ask_engine_driver(
        find_engine_driver(), command,
        {.on_progress = [&](std::string_view phase, double fraction) { work.report(fraction, phase); },
         .on_log = {},
         .should_stop = [&] { return work.is_cancelled(); }},
        renamings);
  } catch (const EngineError& error) {
    throw Error(error.kind(),
                fmt::format("{}{}{}", error.what(), error.next_step().empty() ? "" : "\n", error.next_step()));
  } catch (const Interrupted&) {
    throw Cancelled();
  }
}

}  // namespace

BuildResult build(const Model& model, const std::filesystem::path& engine, const BuildOptions& options) {
  Work work(options.watch);
  return work.run([&] {
    check_operators(model_of(model));
    const PluginNodes nodes = options.plugins ? find_plugin_nodes(model_of(model)) : PluginNodes();
    std::vector<std::string> libraries;
    for (const auto& library : options.plugin_libraries) libraries.push_back(library.string());
    if (!nodes.empty()) libraries = plugin_libraries(model.source(), std::move(libraries), nodes);
    graft::Model written = model_of(model).clone();
    // A function in the file would win over the plugin of the same name, so the parser gets the nodes alone.
    if (!nodes.empty()) detach_functions(written);
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "model.onnx").string();
    write_onnx(written, file);
    return result_of(ask(work, command_of(file, engine, options, libraries), {{file, model.source()}}));
  });
}

}  // namespace graft::toolkit
