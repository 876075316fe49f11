// A build with all that the engine driver tells of it: what `build` and the program are made from.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine_layers.hpp"
#include "engine/plugin_nodes.hpp"
#include "graft/toolkit/model.hpp"
#include "toolkit/engine_driver.hpp"

namespace graft::toolkit {

struct BuildRequest {
  std::string name;  ///< What messages call the model.
  /// The model as a file, which TensorRT reads where plugins do not need another one. Empty: a temporary one is
  /// written.
  std::string file = {};
  std::string engine;                       ///< The file to write.
  std::vector<std::string> options = {};    ///< Of the engine driver's command `build`.
  std::vector<std::string> libraries = {};  ///< Plugin libraries that were named.
  bool plugins = true;                      ///< Graft's operators become plugins.
  bool layers = false;                      ///< Look at the engine's layers.
  DriverListener listener = {};
};

struct BuildReport {
  nlohmann::json built;              ///< The engine driver's result event.
  engine::PluginNodes plugin_nodes;  ///< Of the model.
  std::optional<engine::EngineLayers> layers;
  std::vector<std::string> warnings;  ///< TensorRT's.
  std::vector<std::string> notes;     ///< Graft's own, of operators that are no plugins.
  /// GPUs that the engine is for, and on which its plugins cannot run; and what to do about it.
  std::vector<std::string> targets_without_plugins;
  std::string missing_code;

  /// Why a layer of the engine is a plugin.
  [[nodiscard]] std::string plugin_reason(const std::string& layer) const {
    const auto known = plugin_nodes.find(layer);
    return known != plugin_nodes.end() ? known->second.why : "the model asks for this plugin by name";
  }
};

/// What `build` made, as present.hpp shows it.
struct BuildDetails {
  BuildReport report;
  std::string model;  ///< Its name.
};

/// Throws EngineError where TensorRT refuses the model or an option; Cancelled.
[[nodiscard]] BuildReport build_engine(const Model& given, const BuildRequest& request, const Watch& watch);

}  // namespace graft::toolkit
