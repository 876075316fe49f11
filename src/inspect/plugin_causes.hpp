// Why TensorRT makes no plugin of a node, or not the plugin that was meant.
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
  std::string cause;  ///< A word for programs: see docs/guide/plugin_not_found.md.
  std::string reason;
  std::string advice;
  std::optional<MeantPlugin> meant = {};  ///< The registered plugin that the node was probably to be.
};

/// `error` is the parser's, `creators` are all that are registered, `printed` is what the process printed while it made
/// the node.
/// Nothing where the refusal has nothing to do with plugins.
[[nodiscard]] std::optional<PluginCause> cause_of_refusal(const onnx::Node& node, const nlohmann::json& error,
                                                          const nlohmann::json& creators, const std::string& printed);

/// Why the parser's look-up finds no plugin for a node, without asking it; nothing where there is one.
[[nodiscard]] std::optional<PluginCause> failed_look_up(const onnx::Node& node, const nlohmann::json& creators);

/// Of a plugin that ended TensorRT's process, that did not come back, and that TensorRT could not build.
[[nodiscard]] PluginCause cause_of_crash(const nlohmann::json& creator);
[[nodiscard]] PluginCause cause_of_hang(const nlohmann::json& creator);
[[nodiscard]] PluginCause cause_of_failed_build(const onnx::Node& node, const nlohmann::json& creator,
                                                const std::string& words);

/// Of a node of somebody's domain with the name of an operator of ONNX, which is all that the parser looks at.
[[nodiscard]] std::optional<PluginCause> taken_for_onnx(const onnx::Node& node, const nlohmann::json& creators);

/// What a node gives to a plugin that the creator does not take, or takes for something else; the plugin is made all
/// the same. Empty where all is well.
[[nodiscard]] std::optional<PluginCause> wrong_fields(const onnx::Node& node, const nlohmann::json& creator);

/// The creator that the parser takes for a node: its name, version, and namespace, or its domain. Null if none fits.
[[nodiscard]] const nlohmann::json* creator_of(const onnx::Node& node, const nlohmann::json& creators);

/// "FixtureIdentity 1 of namespace fixture, from libfixture.so"
[[nodiscard]] std::string describe_creator(const nlohmann::json& creator);

}  // namespace graft::inspect
