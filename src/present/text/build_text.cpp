// Writes the summary of a build.
#include "present/text/build_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/shell_quoted.hpp"
#include "present/text/next_steps_text.hpp"

namespace graft::present {
namespace {

std::string shape_text(const report::NetworkTensor& tensor) {
  std::string text;
  for (const std::int64_t dim : tensor.shape)
    text += (text.empty() ? "" : "x") + (dim == -1 ? "?" : std::to_string(dim));
  return fmt::format("{} {}", tensor.dtype, text.empty() ? "scalar" : text);
}

/// Returns the ranges of an input in the optimization profiles.
std::string ranges_text(const report::BuildReport& report, const std::string& name) {
  std::string text;
  for (const auto& profile : report.profiles) {
    const auto range = profile.find(name);
    if (range != profile.end()) text += (text.empty() ? "  for " : ", or ") + range->second;
  }
  return text;
}

}  // namespace

Listing build_text(const report::BuildReport& report) {
  Listing text;
  std::string targets;
  for (const std::string& target : report.targets) targets += ", " + target;
  text.add({"wrote ",
            {report.engine, Color::strong},
            fmt::format(": {}, {}{}, {:.1f} s", bytes_text(report.bytes), report.tensorrt.title(), targets,
                        report.seconds)});
  const report::ParsedNetwork& network = report.network;
  Table table;
  const auto add_ports = [&](const char* kind, const std::vector<report::NetworkTensor>& tensors) {
    for (const report::NetworkTensor& tensor : tensors) {
      table.add({{kind, Color::faint}, tensor.name, shape_text(tensor) + ranges_text(report, tensor.name)});
    }
  };
  add_ports("input", network.inputs);
  add_ports("output", network.outputs);
  table.add({{"layers", Color::faint},
             std::to_string(network.layer_count),
             network.plugins.empty() ? "all native"
                                     : count_text(network.plugins.size(), "of them a plugin", "of them plugins")});
  std::map<std::pair<std::string, std::string>, std::size_t> counts;  // a network may have dozens of equal plugins
  for (const report::PluginLayer& plugin : network.plugins) {
    ++counts[{fmt::format("{} {}", plugin.plugin, plugin.version), plugin.why}];
  }
  for (const auto& [plugin, count] : counts) {
    table.add({{"plugin", Color::faint},
               count == 1 ? plugin.first : fmt::format("{} x {}", count, plugin.first),
               plugin.second});
  }
  const bool has_tf32 = report.options.tf32;
  table.add(
      {{"TF32", Color::faint},
       has_tf32 ? "allowed" : "off",
       has_tf32 ? "f32 layers may compute with 10 bits of mantissa" : "f32 layers compute in f32; --tf32 allows TF32"});
  for (const report::LoadedPluginLibrary& library : report.plugin_libraries) {
    if (library.embedded) table.add({{"library", Color::faint}, library.path, "embedded in the engine"});
  }
  text.add(std::move(table));
  return text;
}

std::string computed_wrongly_text(const report::BuildReport& report) {
  if (report.computed_wrongly.empty()) return {};
  std::string text;
  for (const report::NodeSupport& node : report.computed_wrongly) {
    text += fmt::format("{}{}; {}", text.empty() ? "" : "\n", report.describe_fault(node), node.advice);
  }
  const bool is_any_rewritten =
      std::any_of(report.computed_wrongly.begin(), report.computed_wrongly.end(),
                  [](const report::NodeSupport& node) { return node.support == report::Support::lowered; });
  if (!is_any_rewritten) return text;
  const std::filesystem::path file = report.model;
  const std::filesystem::path converted = file.parent_path() / (file.stem().string() + ".graft.onnx");
  return fmt::format("{}\nRewrite the model and build the result: graft convert {} -o {}{}", text, shell_path(file),
                     shell_path(converted), library_options());
}

}  // namespace graft::present
