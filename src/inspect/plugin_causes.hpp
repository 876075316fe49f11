// Explains why TensorRT creates no plugin for a node, or not the plugin that was meant.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::inspect {

struct MeantPlugin {
  std::string name;
  std::string version;
  std::string space;  ///< The namespace.
};

struct PluginCause {
  std::string cause;  ///< A word that programs can compare; docs/guide/plugin_not_found.md explains each.
  std::string reason;
  std::string advice;
  std::optional<MeantPlugin> meant = {};  ///< The registered plugin that the node probably means.
};

/// Returns the cause of a refusal by the parser, or nothing if the refusal has nothing to do with plugins. `error` is
/// one error of the parser, `creators` are all registered plugin creators, and `printed` is what the process printed
/// while it created the plugin.
[[nodiscard]] std::optional<PluginCause> cause_of_refusal(const onnx::Node& node, const nlohmann::json& error,
                                                          const nlohmann::json& creators, const std::string& printed);

/// Returns why the parser finds no plugin for a node, or nothing if a creator fits. Does not call TensorRT.
[[nodiscard]] std::optional<PluginCause> failed_look_up(const onnx::Node& node, const nlohmann::json& creators);

/// Return the cause for a plugin that ended TensorRT's process, that did not return in time, and that TensorRT could
/// not build. `words` are TensorRT's messages.
[[nodiscard]] PluginCause cause_of_crash(const nlohmann::json& creator);
[[nodiscard]] PluginCause cause_of_hang(const nlohmann::json& creator);
[[nodiscard]] PluginCause cause_of_failed_build(const onnx::Node& node, const nlohmann::json& creator,
                                                const std::string& words);

/// Returns the cause for a plugin in a branch or the body of `outer` (If, Loop or Scan), which TensorRT does not build
/// although it builds the branch or the body as a model of its own.
[[nodiscard]] PluginCause cause_in_body(const onnx::Node& outer, const nlohmann::json& creator,
                                        const std::string& words);

/// Returns the cause if a node of a custom domain has the name of an operator of ONNX: the parser compares only the
/// name.
[[nodiscard]] std::optional<PluginCause> taken_for_onnx(const onnx::Node& node, const nlohmann::json& creators);

/// Returns attributes of a node that the plugin does not have as fields, or has as fields of another type; nothing if
/// all of them fit. TensorRT creates the plugin in spite of such attributes.
[[nodiscard]] std::optional<PluginCause> wrong_fields(const onnx::Node& node, const nlohmann::json& creator);

/// Returns the creator that the parser selects for a node, by name, version and namespace. The namespace is
/// plugin_namespace, or else the node's domain. Returns null if no creator fits.
[[nodiscard]] const nlohmann::json* creator_of(const onnx::Node& node, const nlohmann::json& creators);

/// Returns a description such as "FixtureIdentity 1 of namespace fixture, from libfixture.so".
[[nodiscard]] std::string describe_creator(const nlohmann::json& creator);

}  // namespace graft::inspect
