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

/// Returns the cause if the parser refused a node because of its plugin, or nothing if the refusal has another reason.
/// `error` is one error of the parser, `creators` are all registered plugin creators, and `printed` is what the process
/// printed while it created the plugin.
[[nodiscard]] std::optional<PluginCause> cause_of_refusal(const onnx::Node& node, const nlohmann::json& error,
                                                          const nlohmann::json& creators, const std::string& printed);

/// Returns why TensorRT's parser would find no plugin for a node among `creators`, or nothing if it would find one.
/// Does not call TensorRT.
[[nodiscard]] std::optional<PluginCause> failed_look_up(const onnx::Node& node, const nlohmann::json& creators);

/// Returns the cause of a failure for the creator of a plugin: TensorRT's process crashed (cause_of_crash), a call did
/// not return within the time limit (cause_of_hang), or TensorRT could not build the plugin (cause_of_failed_build).
/// `words` are TensorRT's messages.
[[nodiscard]] PluginCause cause_of_crash(const nlohmann::json& creator);
[[nodiscard]] PluginCause cause_of_hang(const nlohmann::json& creator);
[[nodiscard]] PluginCause cause_of_failed_build(const onnx::Node& node, const nlohmann::json& creator,
                                                const std::string& words);

/// Returns the cause for a plugin inside `outer` (If, Loop or Scan) that TensorRT does not build there, although it
/// builds the branch or body as a separate model. `words` are TensorRT's messages.
[[nodiscard]] PluginCause cause_in_body(const onnx::Node& outer, const nlohmann::json& creator,
                                        const std::string& words);

/// Returns the cause if a node of a custom domain has the name of an ONNX operator, so that the parser, which ignores
/// the domain, takes it for that operator. Otherwise returns nothing.
[[nodiscard]] std::optional<PluginCause> taken_for_onnx(const onnx::Node& node, const nlohmann::json& creators);

/// Returns the cause if a node has attributes that the plugin of `creator` ignores although TensorRT creates it: the
/// plugin has no field of that name, or a field of another type. Returns nothing if all attributes match fields.
[[nodiscard]] std::optional<PluginCause> wrong_fields(const onnx::Node& node, const nlohmann::json& creator);

/// Returns the creator in `creators` that the parser selects for a node by name, version and namespace (the attribute
/// plugin_namespace or, if it is absent, the node's domain), or null if none matches.
[[nodiscard]] const nlohmann::json* creator_of(const onnx::Node& node, const nlohmann::json& creators);

/// Returns the name, version, namespace and library of a creator as text, such as "FixtureIdentity 1 of namespace
/// fixture, from libfixture.so".
[[nodiscard]] std::string describe_creator(const nlohmann::json& creator);

}  // namespace graft::inspect
