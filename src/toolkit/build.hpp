// A build of an engine with everything that the engine driver reports: the implementation of `build` and of the
// program.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine_layers.hpp"
#include "engine/plugin_nodes.hpp"
#include "graft/report/inspect.hpp"
#include "graft/toolkit/model.hpp"
#include "toolkit/engine_driver.hpp"

namespace graft::toolkit {

struct BuildRequest {
  std::string name;  ///< The name of the model in messages.
  /// The file of the model, which TensorRT reads unless the model has to be changed for plugins. Empty: the model is
  /// written to a temporary file.
  std::string file = {};
  std::string engine;                       ///< The file to write.
  std::vector<std::string> options = {};    ///< Options of the engine driver's command `build`.
  std::vector<std::string> libraries = {};  ///< Plugin libraries of the caller.
  bool plugins = true;                      ///< Whether Graft's operators run as plugins.
  bool layers = false;                      ///< Whether the report has the engine's layers.
  DriverListener listener = {};
};

struct BuildReport {
  nlohmann::json built;              ///< The engine driver's result event.
  engine::PluginNodes plugin_nodes;  ///< The nodes of the model that become plugins, with the reasons.
  std::optional<engine::EngineLayers> layers;
  std::vector<std::string> warnings;  ///< TensorRT's warnings.
  /// Graft's file_warnings, and notes on operators built from their functions and on renamed inputs and outputs.
  std::vector<std::string> notes;
  /// The nodes of the model that this release of TensorRT is known to compute wrongly, and those of which an output has
  /// another shape or element type in the network than ONNX defines.
  std::vector<report::NodeSupport> computed_wrongly;
  /// Targets of the engine on which its plugins cannot run, because the plugin library has no code for them.
  std::vector<std::string> targets_without_plugins;
  std::string missing_code;  ///< The warning about these targets, with the remedies; empty where there are none.

  /// Returns why a layer of the engine is a plugin.
  [[nodiscard]] std::string plugin_reason(const std::string& layer) const {
    const auto known = plugin_nodes.find(layer);
    return known != plugin_nodes.end() ? known->second.why : "the model requests this plugin by name";
  }
};

/// The details of a BuildResult, which the functions of present.hpp read.
struct BuildDetails {
  BuildReport report;
  std::string model;  ///< The name of the model.
};

/// Builds an engine and writes it to the file of the request. Throws EngineError where TensorRT refuses the model or an
/// option; Error for a file that names both halves of a cut network, for a node that ONNX forbids, and where the plugin
/// library is missing; Cancelled.
[[nodiscard]] BuildReport build_engine(const Model& given, const BuildRequest& request, const Watch& watch);

}  // namespace graft::toolkit
