// Writes a readable dump of a model.
#include "onnx/text.hpp"

#include <fmt/format.h>

namespace graft::onnx {

std::string size_text(const Dim& dim) {
  std::string text = dim.to_string();
  return text.find('?') == std::string::npos ? text : "?";
}

namespace {

template <class List, class F>
std::string join(const List& list, F&& f) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + f(item);
  return text;
}

std::string name_of(const Value* value) { return value == nullptr ? "_" : value->name; }

std::string graph_text(const Graph& graph, const std::string& indent);

std::string attribute_text(const NodeAttribute& attribute, const std::string& indent) {
  if (const auto value = attribute.value()) {
    // Floats are written with a decimal point: 1 is an int, 1.0 is a float.
    if (const auto* number = std::get_if<float>(&*value)) return fmt::format("{:#}", *number);
    if (const auto* numbers = std::get_if<std::vector<float>>(&*value)) {
      return "[" + join(*numbers, [](float n) { return fmt::format("{:#}", n); }) + "]";
    }
    return graft::to_string(*value);
  }
  if (const auto* reference = attribute.get<AttributeReference>()) return "@" + reference->name;
  if (const auto* tensor = attribute.get<TensorData>()) return to_string(*tensor);
  if (const auto* graph = attribute.get<std::unique_ptr<Graph>>())
    return "{\n" + graph_text(**graph, indent + "  ") + indent + "}";
  if (const auto* graphs = attribute.get<std::vector<std::unique_ptr<Graph>>>()) {
    return "[" + join(*graphs, [&](const auto& g) { return "{\n" + graph_text(*g, indent + "  ") + indent + "}"; }) +
           "]";
  }
  if (const auto* strings = attribute.get<std::vector<std::string>>()) {
    return "[" + join(*strings, [](const std::string& t) { return '"' + t + '"'; }) + "]";
  }
  return fmt::format("<{}>", attribute.kind());
}

std::string node_text(const Node& node, const std::string& indent) {
  std::string text = join(node.outputs, [](const Value* v) {
    return v == nullptr ? std::string("_") : fmt::format("{}: {}", v->name, type_text(*v));
  });
  text += fmt::format(" = {}{}", node.domain.empty() ? "" : node.domain + "::", node.op_type);
  if (!node.overload.empty()) text += ":" + node.overload;
  if (!node.attributes.empty()) {
    text += "<" +
            join(node.attributes,
                 [&](const auto& entry) { return entry.first + "=" + attribute_text(entry.second, indent); }) +
            ">";
  }
  text += "(" + join(node.inputs, name_of) + ")";
  if (!node.name.empty()) text += "  # " + node.name;
  return text;
}

std::string signature(const Graph& graph) {
  return fmt::format("({}) -> ({})",
                     join(graph.inputs(), [](const Value* v) { return v->name + ": " + type_text(*v); }),
                     join(graph.outputs(), [](const Value* v) { return v->name + ": " + type_text(*v); }));
}

std::string graph_text(const Graph& graph, const std::string& indent) {
  std::string text = fmt::format("{}graph {}{}\n", indent, graph.name, signature(graph));
  for (const Value* value : graph.initializers()) {
    text += fmt::format("{}  {} = {}\n", indent, value->name, to_string(*value->initializer));
  }
  for (const Node* node : graph.nodes()) text += fmt::format("{}  {}\n", indent, node_text(*node, indent + "  "));
  return text;
}

std::string opset_text(const Graph& graph) {
  return join(graph.opset_imports, [](const auto& entry) {
    return fmt::format("{} {}", entry.first.empty() ? "ai.onnx" : entry.first, entry.second);
  });
}

}  // namespace

std::string type_text(const Value& value) {
  if (!value.type && !value.shape) return "?";
  const std::string type = value.type ? to_string(*value.type) : "?";
  if (!value.shape) return type + "[...]";
  return type + "[" + join(*value.shape, size_text) + "]";
}

std::string to_text(const Node& node) { return node_text(node, ""); }
std::string to_text(const NodeAttribute& attribute) { return attribute_text(attribute, ""); }
std::string to_text(const Graph& graph) { return graph_text(graph, ""); }

std::string to_text(const Model& model) {
  std::string text = fmt::format("model ir {}, {}", model.ir_version, opset_text(model.graph()));
  if (!model.producer_name.empty()) text += fmt::format(", from {} {}", model.producer_name, model.producer_version);
  text += "\n" + to_text(model.graph());
  for (const auto& [key, function] : model.functions) {
    text += fmt::format("function {}::{}{}", key.domain, key.name, key.overload.empty() ? "" : ":" + key.overload);
    std::vector<std::string> attributes = function.attributes;
    for (const auto& [name, value] : function.attribute_defaults)
      attributes.push_back(name + "=" + attribute_text(value, ""));
    text += fmt::format("<{}> in {}\n", join(attributes, [](const std::string& a) { return a; }),
                        opset_text(*function.body));
    text += graph_text(*function.body, "  ");
  }
  return text;
}

}  // namespace graft::onnx
