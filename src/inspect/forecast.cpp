// The report of the conversion names the original nodes by NodeRef, which maps them to the forecast.
#include "inspect/forecast.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "graft/error.hpp"
#include "onnx/faults.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/plugin_reason.hpp"
#include "rules/rule_passes.hpp"

namespace graft::inspect {
namespace {

/// Moves a node with a fault to a domain that no pass handles.
void hide_faults(onnx::Model& model) {
  model.graph().for_each_node([](onnx::Node& node) {
    if (node.metadata.contains(onnx::fault_note)) node.domain = onnx::fault_note;
  });
}

/// Returns, by the name of the first output, why a node of the converted model is a plugin.
std::map<std::string, std::string> plugin_reasons(const onnx::Model& converted) {
  std::map<std::string, std::string> reasons;
  converted.graph().for_each_node([&](const onnx::Node& node) {
    const auto reason = node.metadata.find(onnx::reason_note);
    if (reason != node.metadata.end() && node.output() != nullptr) reasons.emplace(node.output()->name, reason->second);
  });
  return reasons;
}

}  // namespace

void infer_and_note_faults(onnx::Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes) {
  const auto note = [&](onnx::Node& node, const Error& error) {
    node.metadata[std::string(onnx::fault_note)] = fmt::format("{}: {}", model.source, error.what());
  };
  infer_around_faults(model, input_shapes, note);
  model.graph().for_each_node([&](onnx::Node& node) {
    try {
      check_operator(node);
    } catch (const Error& error) {
      note(node, error);
    }
  });
}

onnx::Model inferred_copy(const onnx::Model& model) {
  onnx::Model copy = model.clone();
  infer_and_note_faults(copy, {});
  return copy;
}

report::RewriteReport convert_in_memory(const runtime::Engine& engine, onnx::Model& model) {
  passes::ConvertOptions options;
  options.extra_passes = {rules::library_fusion_pass()};
  options.prove = false;
  if (engine.can_run()) {
    std::as_const(model).graph().for_each_node(
        [&](const onnx::Node& node) { options.prove = options.prove || find_operator_for(node); });
  }
  return convert(engine, model, options);
}

Prospect prospect_of(const runtime::Engine& engine, const onnx::Model& model) {
  onnx::Model converted = model.clone();
  hide_faults(converted);
  Prospect prospect;
  report::RewriteReport report;
  try {
    report = convert_in_memory(engine, converted);
  } catch (const Error& error) {
    prospect.warnings.push_back(fmt::format(
        "`graft convert` refuses the model, so this report does not predict what the conversion changes: {}",
        error.what()));
  }
  prospect.nodes = onnx::count_nodes(converted);
  const std::map<std::string, std::string> reasons = plugin_reasons(converted);
  // why a plugin computes the first output of a node after the conversion
  std::map<NodeRef, std::string, onnx::ByName> plugins;
  model.graph().for_each_node([&](const onnx::Node& node) {
    const auto reason = node.output() == nullptr ? reasons.end() : reasons.find(node.output()->name);
    if (reason != reasons.end()) plugins.emplace(ref_of(node), reason->second);
  });
  for (const report::Rewrite& rewrite : report.rewrites) {
    std::string what = rewrite.pass == "remove_dead"
                           ? "no output needs it: `graft convert` removes it"
                           : fmt::format("`graft convert` replaces it with {}", rewrite.replacement);
    for (const NodeRef& node : rewrite.nodes) {
      const auto plugin = plugins.find(node);
      if (plugin == plugins.end()) continue;
      what += fmt::format(", as a plugin: {}", plugin->second);
      if (rewrite.nodes.size() > 1) prospect.fused += rewrite.nodes.size();
      break;
    }
    for (const NodeRef& node : rewrite.nodes) prospect.forecast.becomes.emplace(node, what);
  }
  prospect.warnings.insert(prospect.warnings.end(), report.warnings.begin(), report.warnings.end());
  prospect.near_misses = std::move(report.near_misses);
  if (!report.rewrites.empty()) prospect.converted = std::make_shared<const onnx::Model>(std::move(converted));
  for (const report::Rewrite& rewrite : report.rejected) {
    prospect.forecast.stays.insert(rewrite.nodes.begin(), rewrite.nodes.end());
  }
  return prospect;
}

}  // namespace graft::inspect
