// Adds the reasons for plugins and the engine's layers to the result of the engine driver.
#include "present/json/build_json.hpp"

#include "onnx/node_ref.hpp"
#include "present/json/fields.hpp"

namespace graft::present {
namespace {

Json json_of(const std::vector<engine::EngineTensor>& tensors) {
  Json json = Json::array();
  for (const engine::EngineTensor& tensor : tensors) json.push_back({{"tensor", tensor.name}, {"type", tensor.type}});
  return json;
}

void add_engine_layers(Json& result, const engine::EngineLayers& engine) {
  Json layers = Json::array();
  for (const engine::EngineLayer& layer : engine.layers) {
    layers.push_back({{"name", layer.name},
                      {"kind", layer.kind},
                      {"is_matrix", layer.is_matrix},
                      {"inputs", json_of(layer.inputs)},
                      {"outputs", json_of(layer.outputs)},
                      {"nodes", layer.nodes}});
  }
  Json islands = Json::array();
  for (const engine::FloatIsland& island : engine.islands) {
    islands.push_back({{"node", onnx::describe(island.node)}, {"layer", island.layer}, {"type", island.type}});
  }
  result["layers"] = engine.unknown.empty() ? layers : Json();
  result["layer_summary"] = {{"unknown", engine.unknown},
                             {"reads", count_reads(engine.layers)},
                             {"matrix_reads", count_reads(matrix_layers(engine))},
                             {"f32_islands", islands}};
}

}  // namespace

Json build_json(const toolkit::BuildReport& report, const std::string& model) {
  Json result = report.built;
  for (const char* own : {"event", "command", "engine_layers", "tensors"}) result.erase(own);
  result["model"] = model;
  Json plugins = Json::array();
  for (const auto& plugin : report.built["network"]["plugins"]) {
    Json entry = plugin;
    entry["why"] = report.plugin_reason(plugin.value("layer", ""));
    plugins.push_back(std::move(entry));
  }
  result["network"]["plugins"] = std::move(plugins);
  result["targets_without_plugins"] = report.targets_without_plugins;
  result["missing_code"] = report.missing_code;
  result["computed_wrongly"] = json_of_value(report.computed_wrongly);
  if (report.layers) add_engine_layers(result, *report.layers);
  return result;
}

}  // namespace graft::present
