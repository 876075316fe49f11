// Widens the types of values, of tensors, and of attributes that hold the code of a type.
#include "runtime/onnxruntime/widen.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "onnx/functions.hpp"
#include "onnx/low_precision.hpp"
#include "onnx/schema.hpp"
#include "onnx/shape_inference.hpp"

namespace graft::runtime {
namespace {

using onnx::ElementType;
using onnx::is_low_precision;

/// Returns the type whose code an attribute contains, for example `to` of Cast, `dtype` of RandomNormal or
/// `output_dtype` of DequantizeLinear.
std::optional<ElementType> type_in(const std::string& name, const onnx::NodeAttribute& attribute) {
  constexpr std::array names{"to", "dtype", "output_dtype", "precision", "qk_matmul_output_type", "softmax_precision"};
  const auto* code = attribute.get<std::int64_t>();
  if (code == nullptr || std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
  return static_cast<ElementType>(*code);
}

bool holds_narrow(const onnx::Graph& graph);

bool holds_narrow(const onnx::Node& node) {
  for (const auto& [name, attribute] : node.attributes) {
    if (is_low_precision(type_in(name, attribute))) return true;
    if (const auto* tensor = attribute.get<onnx::TensorData>(); tensor != nullptr && is_low_precision(tensor->type)) {
      return true;
    }
  }
  const std::vector<onnx::Graph*> graphs = node.subgraphs();
  return std::any_of(graphs.begin(), graphs.end(), [](const onnx::Graph* inner) { return holds_narrow(*inner); });
}

bool holds_narrow(const onnx::Graph& graph) {
  const std::vector<onnx::Value*> values = graph.values();
  const std::vector<onnx::Node*> nodes = graph.nodes();
  return std::any_of(values.begin(), values.end(),
                     [](const onnx::Value* value) {
                       return is_low_precision(value->type) ||
                              (value->initializer && is_low_precision(value->initializer->type));
                     }) ||
         std::any_of(nodes.begin(), nodes.end(), [](const onnx::Node* node) { return holds_narrow(*node); });
}

bool holds_narrow(const onnx::Model& model) {
  return holds_narrow(model.graph()) || std::any_of(model.functions.begin(), model.functions.end(),
                                                    [](const auto& entry) { return holds_narrow(*entry.second.body); });
}

std::map<std::string, ElementType, std::less<>> narrow_of(const std::vector<onnx::Value*>& values) {
  std::map<std::string, ElementType, std::less<>> narrow;
  for (const onnx::Value* value : values) {
    if (is_low_precision(value->type)) narrow.emplace(value->name, *value->type);
  }
  return narrow;
}

onnx::TensorData widened(const onnx::TensorData& tensor) {
  onnx::TensorData wide = onnx::TensorData::from_numbers(ElementType::f32, tensor.dims, *tensor.numbers());
  wide.name = tensor.name;
  return wide;
}

void widen_attributes(onnx::Node& node) {
  for (auto& [name, attribute] : node.attributes) {
    if (is_low_precision(type_in(name, attribute))) attribute.data = static_cast<std::int64_t>(ElementType::f32);
    const auto* tensor = attribute.get<onnx::TensorData>();
    if (tensor != nullptr && is_low_precision(tensor->type)) attribute.data = widened(*tensor);
  }
}

void widen_values(onnx::Graph& graph) {
  for (onnx::Value* value : graph.values()) {
    if (value->initializer && is_low_precision(value->initializer->type))
      value->initializer = widened(*value->initializer);
    if (is_low_precision(value->type)) value->type = ElementType::f32;
  }
}

/// A value that is rounded after the node that computes it, and the type to round to.
struct Rounding {
  onnx::Node* node = nullptr;
  onnx::Value* value = nullptr;
  ElementType type = ElementType::undefined;
};

std::vector<Rounding> roundings_of(onnx::Model& model, bool round_inside) {
  std::vector<Rounding> found;
  model.graph().for_each_node([&](onnx::Node& node) {
    // A node that only moves data reads values that are already rounded.
    if (has_trait(node, onnx::trait::moves_data)) return;
    for (onnx::Value* value : node.outputs) {
      if (value == nullptr || !is_low_precision(value->type) || value->constant()) continue;
      if (round_inside || is_any_of(node, {"Cast", "CastLike"})) {
        found.push_back({.node = &node, .value = value, .type = *value->type});
      }
    }
  });
  return found;
}

onnx::Node* add_cast(onnx::Graph& graph, onnx::Value& value, ElementType type) {
  onnx::Node* cast = graph.add_node("Cast", {&value}, {value.name}, nullptr, "");
  cast->attributes.emplace("to", onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(type))));
  cast->output()->type = type;
  cast->output()->shape = value.shape;
  return cast;
}

}  // namespace

NarrowTypes widen_narrow_types(onnx::Model& model, bool round_inside) {
  if (!holds_narrow(model)) return {};
  // Graft's functions are detached first, so that they are regenerated for f32.
  onnx::detach_functions(model);
  onnx::inline_functions(model);
  onnx::infer_shapes(model);
  NarrowTypes narrow{.inputs = narrow_of(model.graph().inputs()), .outputs = narrow_of(model.graph().outputs())};
  const std::vector<Rounding> roundings = roundings_of(model, round_inside);
  widen_values(model.graph());
  model.graph().for_each_node([](onnx::Node& node) {
    widen_attributes(node);
    for (onnx::Graph* inner : node.subgraphs()) widen_values(*inner);
  });
  std::set<onnx::Graph*> changed;
  for (const Rounding& rounding : roundings) {
    onnx::Graph& graph = *rounding.node->graph;
    onnx::Node* narrowing = add_cast(graph, *rounding.value, rounding.type);
    onnx::Node* widening = add_cast(graph, *narrowing->output(), ElementType::f32);
    graph.replace_all_uses(*rounding.value, *widening->output(), narrowing);
    changed.insert(&graph);
  }
  for (onnx::Graph* graph : changed) graph->topological_sort();
  return narrow;
}

}  // namespace graft::runtime
