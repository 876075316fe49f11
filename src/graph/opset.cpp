// Raising a model's operator set: what changed in ONNX, operator by operator.
#include "graph/opset.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graph/standard_operators.hpp"

namespace graft {
namespace {

class Raiser {
 public:
  Raiser(std::int64_t from, std::int64_t to, bool constants_as_nodes)
      : from_(from), to_(to), constants_as_nodes_(constants_as_nodes) {}

  void raise(Graph& graph) {
    for (Node* node : graph.nodes()) {
      for (Graph* inner : node->subgraphs()) raise(*inner);
      if (!node->domain.empty() || !form_changed(node->op_type, from_, to_)) continue;
      raise(*node);
    }
  }

 private:
  [[nodiscard]] bool crosses(std::int64_t version) const { return from_ < version && version <= to_; }

  [[noreturn]] void refuse(const Node& node, const std::string& reason) const {
    throw Error(
        fmt::format("{}: operator set {} of ai.onnx cannot be raised to {}: {}. Export the model again with operator "
                    "set {} or above",
                    describe(node), from_, to_, reason, to_));
  }

  Value* add_constant(Node& before, std::string_view hint, TensorData tensor) const {
    Graph& graph = *before.graph;
    if (!constants_as_nodes_) return graph.add_constant(hint, std::move(tensor));
    Node* node = graph.add_node("Constant", {}, {std::string(hint)}, &before);
    node->attributes["value"] = NodeAttribute(AttributeData(std::move(tensor)));
    return node->output();
  }

  /// The attribute as a value; one that refers to a function's attribute stays such a reference.
  Value* value_of(Node& node, const AttributeInput& entry, const NodeAttribute& attribute) const {
    const std::string hint =
        fmt::format("{}_{}", node.output() == nullptr ? "value" : node.output()->name, entry.attribute);
    const ElementType number_type = node.op_type == "Dropout" || node.op_type == "Upsample" || node.input(0) == nullptr
                                        ? ElementType::f32
                                        : node.input(0)->type.value_or(ElementType::f32);
    if (const auto* ints = attribute.get<std::vector<std::int64_t>>()) {
      return add_constant(node, hint, TensorData::from_ints(*ints));
    }
    if (const auto* k = attribute.get<std::int64_t>()) return add_constant(node, hint, TensorData::from_ints({*k}));
    if (const auto* floats = attribute.get<std::vector<float>>()) {
      return add_constant(node, hint, TensorData::from_floats(*floats));
    }
    if (const auto* number = attribute.get<float>()) {
      return add_constant(node, hint, TensorData::scalar_of(number_type, *number));
    }
    const auto* reference = attribute.get<AttributeReference>();
    if (reference == nullptr || entry.attribute == "k") {
      refuse(node, fmt::format("attribute `{}` is of type {}", entry.attribute, attribute.kind()));
    }
    Node* constant = node.graph->add_node("Constant", {}, {hint}, &node);
    const bool one = entry.op_type == "Clip" || entry.attribute == "value" || entry.attribute == "ratio";
    const bool real = one || entry.attribute == "scales";
    const char* name = real ? (one ? "value_float" : "value_floats") : "value_ints";
    constant->attributes[name] = NodeAttribute(AttributeData(*reference));
    return constant->output();
  }

  void attributes_to_inputs(Node& node) const {
    for (const AttributeInput& entry : attribute_inputs(node.op_type)) {
      const NodeAttribute* attribute = node.attribute(entry.attribute);
      if (!crosses(entry.until) || attribute == nullptr) continue;
      Value* value = value_of(node, entry, *attribute);
      while (node.inputs.size() < entry.input) node.graph->add_input_to(node, nullptr);
      node.graph->set_input(node, entry.input, value);
      node.attributes.erase(node.attributes.find(entry.attribute));
    }
  }

  /// Before 13 it ran over all axes from `axis` on, as if they were one.
  void raise_softmax(Node& node) const {
    Graph& graph = *node.graph;
    Value* x = node.input(0);
    if (x == nullptr || node.output() == nullptr) refuse(node, "it has no input or no output");
    const auto* reference =
        node.attribute("axis") == nullptr ? nullptr : node.attribute("axis")->get<AttributeReference>();
    if (reference != nullptr) refuse(node, "its axis is the attribute of a function");
    const std::int64_t axis = node.int_or("axis", 1);
    const auto rank = x->rank();
    if (axis == -1 || (rank && (axis == *rank - 1 || *rank == 0))) {
      node.attributes["axis"] = NodeAttribute(AttributeData(std::int64_t{-1}));
      return;
    }
    const std::string name = node.output()->name;
    Node* flat = graph.add_node("Flatten", {x}, {name + "_flat"}, &node);
    flat->attributes["axis"] = NodeAttribute(AttributeData(axis));
    Node* shape = graph.add_node("Shape", {x}, {name + "_shape"}, &node);
    Node* softmax = graph.add_node(node.op_type, {flat->output()}, {name + "_" + node.op_type}, &node);
    softmax->attributes["axis"] = NodeAttribute(AttributeData(std::int64_t{-1}));
    softmax->name = node.name;
    // The node itself becomes the last of them, which keeps its output in place.
    node.op_type = "Reshape";
    node.name += node.name.empty() ? "" : "_shape";
    node.attributes.clear();
    graph.set_input(node, 0, softmax->output());
    graph.add_input_to(node, shape->output());
  }

  void raise(Node& node) const {
    const std::string& type = node.op_type;
    attributes_to_inputs(node);
    if (type == "Softmax" || type == "LogSoftmax" || type == "Hardmax") {
      if (crosses(13)) raise_softmax(node);
    } else if (type == "BatchNormalization") {
      if (node.int_or("spatial", 1) != 1) refuse(node, "attribute `spatial` is 0");
      node.attributes.erase("spatial");
      for (std::size_t i = 1; i < node.outputs.size(); ++i) {
        Value* output = node.outputs[i];
        if (output != nullptr && !output->is_unused()) refuse(node, "its training outputs are used");
        node.outputs[i] = nullptr;
        if (output == nullptr) continue;
        output->producer = nullptr;
        node.graph->remove_value(*output);
      }
      node.outputs.resize(std::min<std::size_t>(node.outputs.size(), 1));
    } else if (type == "Upsample" || (type == "Resize" && crosses(11))) {
      if (!crosses(10) && type == "Upsample") return;
      if (to_ < 11) refuse(node, "Resize as it is since operator set 11 is needed");
      node.op_type = "Resize";
      Value* scales = node.input(1);
      node.graph->set_input(node, 1, nullptr);
      node.graph->set_input(node, 2, scales);
      if (node.string_or("mode", "nearest") == "bilinear")
        node.attributes["mode"] = NodeAttribute(AttributeData(std::string("linear")));
      node.attributes["coordinate_transformation_mode"] = NodeAttribute(AttributeData(std::string("asymmetric")));
      node.attributes["nearest_mode"] = NodeAttribute(AttributeData(std::string("floor")));
    } else if (type == "Scatter") {
      node.op_type = "ScatterElements";
    } else if (type == "Split" && crosses(18)) {
      if (node.input(1) == nullptr) {
        node.attributes["num_outputs"] = NodeAttribute(AttributeData(static_cast<std::int64_t>(node.outputs.size())));
      }
    } else if (type == "GridSample") {
      const std::string mode = node.string_or("mode", "bilinear");
      const std::string newer = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
      node.attributes["mode"] = NodeAttribute(AttributeData(newer));
    } else if (type == "DFT" || type == "GroupNormalization" || type == "Scan") {
      refuse(node, "the operator changed in between");
    }
  }

  std::int64_t from_;
  std::int64_t to_;
  bool constants_as_nodes_;
};

}  // namespace

void raise_graph_opset(Graph& graph, std::int64_t version, bool constants_as_nodes) {
  const std::int64_t from = graph.opset();
  if (from >= version) return;
  if (from != 0) Raiser(from, version, constants_as_nodes).raise(graph);
  graph.opset_imports[""] = version;
}

void raise_opset(Model& model, std::int64_t version) {
  const auto is_old = [&](const Graph& graph) { return graph.opset() < version; };
  if (!is_old(model.graph()) && std::none_of(model.functions.begin(), model.functions.end(),
                                             [&](const auto& f) { return is_old(*f.second.body); })) {
    return;
  }
  Model raised = model.clone();  // so that a refusal changes nothing
  raise_graph_opset(raised.graph(), version, false);
  for (auto& [key, function] : raised.functions) {
    if (function.body->opset() != 0) raise_graph_opset(*function.body, version, true);
  }
  model = std::move(raised);
}

}  // namespace graft
