// Writes the summary of a build.
#include "present/text/build_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "engine/engine_session.hpp"
#include "onnx/node_ref.hpp"
#include "present/text/next_steps_text.hpp"
#include "present/text/shell_quoted.hpp"

namespace graft::present {
namespace {

std::string shape_text(const nlohmann::json& tensor) {
  std::string text;
  for (const auto& dim : tensor["shape"]) text += (text.empty() ? "" : "x") + (dim == -1 ? "?" : dim.dump());
  return fmt::format("{} {}", tensor.value("dtype", ""), text.empty() ? "scalar" : text);
}

/// Returns the ranges of an input in the optimization profiles.
std::string ranges_text(const nlohmann::json& profiles, const std::string& name) {
  std::string text;
  for (const auto& profile : profiles) {
    if (profile.contains(name)) text += (text.empty() ? "  for " : ", or ") + profile[name].get<std::string>();
  }
  return text;
}

}  // namespace

Listing build_text(const toolkit::BuildReport& report, const std::string& engine) {
  const nlohmann::json& built = report.built;
  Listing text;
  std::string targets;
  for (const auto& target : built["targets"]) targets += ", " + target.get<std::string>();
  text.add({"wrote ",
            {engine, Color::strong},
            fmt::format(": {}, {}{}, {:.1f} s", bytes_text(built.value("bytes", std::uint64_t{0})),
                        engine::tensorrt_in(built).title(), targets, built.value("seconds", 0.0))});
  const nlohmann::json& network = built["network"];
  const nlohmann::json& plugins = network["plugins"];
  Table table;
  for (const char* side : {"inputs", "outputs"}) {
    for (const auto& tensor : network[side]) {
      const std::string name = tensor.value("name", "");
      table.add({{side == std::string_view("inputs") ? "input" : "output", Color::faint},
                 name,
                 shape_text(tensor) + ranges_text(built["profiles"], name)});
    }
  }
  table.add({{"layers", Color::faint},
             network["layer_count"].dump(),
             plugins.empty() ? "all native" : count_text(plugins.size(), "of them a plugin", "of them plugins")});
  std::map<std::pair<std::string, std::string>, std::size_t> counts;  // a network may have dozens of equal plugins
  for (const auto& plugin : plugins) {
    const std::string name = fmt::format("{} {}", plugin.value("name", ""), plugin.value("version", ""));
    ++counts[{name, report.plugin_reason(plugin.value("layer", ""))}];
  }
  for (const auto& [plugin, count] : counts) {
    table.add({{"plugin", Color::faint},
               count == 1 ? plugin.first : fmt::format("{} x {}", count, plugin.first),
               plugin.second});
  }
  const bool has_tf32 = built["options"].value("tf32", false);
  table.add(
      {{"TF32", Color::faint},
       has_tf32 ? "allowed" : "off",
       has_tf32 ? "f32 layers may compute with 10 bits of mantissa" : "f32 layers compute in f32; --tf32 allows TF32"});
  for (const auto& library : built["plugin_libraries"]) {
    if (library.value("embedded", false)) {
      table.add({{"library", Color::faint}, library.value("path", ""), "embedded in the engine"});
    }
  }
  text.add(std::move(table));
  return text;
}

std::string computed_wrongly_text(const toolkit::BuildReport& report, const std::string& model) {
  if (report.computed_wrongly.empty()) return {};
  std::string text;
  for (const report::NodeSupport& node : report.computed_wrongly) {
    text += fmt::format("{}{}: {} builds this node and computes it wrongly: {}; {}", text.empty() ? "" : "\n",
                        onnx::describe(node.node), engine::tensorrt_in(report.built).title(), node.reason, node.advice);
  }
  const bool is_any_rewritten =
      std::any_of(report.computed_wrongly.begin(), report.computed_wrongly.end(),
                  [](const report::NodeSupport& node) { return node.support == report::Support::lowered; });
  if (!is_any_rewritten) return text;
  const std::filesystem::path file = model;
  const std::filesystem::path converted = file.parent_path() / (file.stem().string() + ".graft.onnx");
  return fmt::format("{}\nRewrite the model and build the result: graft convert {} -o {}{}", text, shell_path(file),
                     shell_path(converted), library_options());
}

}  // namespace graft::present
