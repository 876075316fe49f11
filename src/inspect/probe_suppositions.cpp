// Assumes types and shapes for the outputs of failing nodes, and copies the types and shapes that plugins report, so
// that the nodes after them can be probed.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "inspect/model_parts.hpp"
#include "inspect/tensorrt_probe.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/text.hpp"

namespace graft::inspect {
namespace {

using nlohmann::json;

/// Returns the element type that the engine driver calls `name` ("f32", "bool" ...), or nothing for an unknown name.
std::optional<onnx::ElementType> element_type_named(std::string_view name) {
  for (const onnx::ElementType type :
       {onnx::ElementType::f32, onnx::ElementType::f16, onnx::ElementType::bf16, onnx::ElementType::i8,
        onnx::ElementType::u8, onnx::ElementType::i32, onnx::ElementType::i64}) {
    if (to_string(type) == name) return type;
  }
  return name == "bool" ? std::optional(onnx::ElementType::boolean) : std::nullopt;
}

}  // namespace

bool TensorRTProbe::suppose_outputs() {
  bool any = false;
  for (const onnx::Node* node : nodes_) {
    if (!bad_.contains(node)) continue;
    std::string supposed = suppose_outputs_of(*node);
    if (supposed.empty()) continue;
    supposed_of_.emplace(node, std::move(supposed));
    any = true;
    infer();
  }
  if (!any) return false;
  for (const onnx::Node* node : nodes_) {
    for_each_read(*node, model_.graph(), [&](const onnx::Value& value) {
      if (value.producer == nullptr) return;
      if (const auto made = supposed_of_.find(value.producer); made != supposed_of_.end()) {
        report_.supposed.emplace(node, made->second);
      }
      const auto before = report_.supposed.find(value.producer);
      if (before != report_.supposed.end()) report_.supposed.emplace(node, before->second);
    });
  }
  set_aside();
  return true;
}

std::string TensorRTProbe::suppose_outputs_of(const onnx::Node& node) {
  if (onnx::is_standard_operator(node.domain, node.op_type)) return {};
  const auto is_unknown = [](const onnx::Value* value) {
    return value != nullptr && !value->is_unused() && value->opaque.empty() && (!value->type || !value->shape);
  };
  if (std::none_of(node.outputs.begin(), node.outputs.end(), is_unknown)) return {};
  if (std::string as_meant = try_meant_plugin(node); !as_meant.empty()) return as_meant;
  const auto like = std::find_if(node.inputs.begin(), node.inputs.end(),
                                 [](const onnx::Value* v) { return v != nullptr && v->type && v->shape; });
  if (like == node.inputs.end()) return {};
  for (onnx::Value* output : node.outputs) {
    if (!is_unknown(output)) continue;
    if (!output->type) output->type = (*like)->type;
    if (!output->shape) output->shape = (*like)->shape;
  }
  return fmt::format("the output of '{}' has the type and shape of '{}', {}", node.name, (*like)->name,
                     type_text(**like));
}

/// Parses a node under the name and version of the plugin that the user probably meant, and copies the types and shapes
/// of its outputs. Returns a description of this assumption, or an empty string if nothing was learned.
std::string TensorRTProbe::try_meant_plugin(const onnx::Node& node) {
  const auto meant = meant_.find(&node);
  if (meant == meant_.end() || trials_.is_spent()) return {};
  const MeantPlugin plugin_meant = std::move(meant->second);
  meant_.erase(meant);
  onnx::Model model = part_of({&node});
  onnx::Node& copy = *model.graph().find_node(node.name);
  copy.op_type = plugin_meant.name;
  copy.attributes["plugin_version"] = onnx::NodeAttribute(onnx::AttributeData(plugin_meant.version));
  copy.attributes["plugin_namespace"] = onnx::NodeAttribute(onnx::AttributeData(plugin_meant.space));
  const Trial trial = trials_.parse(model);
  if (trial.outcome != Outcome::accepted) return {};
  bool learnt = false;
  for (const json& plugin : trial.answer["plugins"]) learnt = learn_types(plugin) || learnt;
  if (!learnt) return {};
  return fmt::format("'{}' is the plugin {} of version {}", node.name, plugin_meant.name, plugin_meant.version);
}

/// Adds to ProbeReport::not_asked, with the reason, each node that cannot be probed because it computes sizes from the
/// output of a failing node or of another node in `not_asked`.
void TensorRTProbe::set_aside() {
  report_.not_asked = uncertain_;
  for (const onnx::Node* node : nodes_) {
    if (bad_.contains(node) || report_.not_asked.contains(node)) continue;
    for_each_read(*node, model_.graph(), [&](const onnx::Value& value) {
      if (value.producer == nullptr || can_be_input(value)) return;
      const bool is_behind = bad_.contains(value.producer) || uncertain_.contains(value.producer);
      const auto before = report_.not_asked.find(value.producer);
      if (is_behind) {
        report_.not_asked.emplace(
            node, fmt::format("it needs the output of '{}', which TensorRT did not accept", value.producer->name));
      } else if (before != report_.not_asked.end()) {
        report_.not_asked.emplace(node, before->second);
      }
    });
  }
}

/// Copies the types and shapes of plugin outputs that TensorRT reported, and infers types again. Graft cannot infer
/// them for third-party plugins, and without them the nodes after a plugin could not be extracted as a model.
void TensorRTProbe::learn_types_of_plugins() {
  bool any = false;
  for (const auto& [node, plugin] : report_.plugins) any = learn_types(plugin) || any;
  if (any) infer();
}

bool TensorRTProbe::learn_types(const json& plugin) {
  bool any = false;
  for (const json& output : plugin.value("outputs", json::array())) {
    onnx::Value* value = model_.graph().find_local(output.value("name", ""));
    const auto type = element_type_named(output.value("dtype", ""));
    if (value == nullptr || value->type || !type) continue;
    value->type = type;
    value->shape.emplace();
    for (const json& size : output["shape"]) {
      value->shape->push_back(size.get<std::int64_t>() < 0 ? onnx::unknown_dim() : Dim(size.get<std::int64_t>()));
    }
    any = true;
  }
  return any;
}

}  // namespace graft::inspect
