// Rewrites nodes for the changes between ONNX's opsets, operator by operator.
#include "onnx/opset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "onnx/node_ref.hpp"
#include "onnx/schema.hpp"
#include "onnx/standard_operators.hpp"

namespace graft::onnx {
namespace {

constexpr std::array binary_operators{"Add", "And", "Div", "Equal", "Greater", "Less",
                                      "Mul", "Or",  "Pow", "Sub",   "Xor"};

NodeAttribute text_attribute(std::string_view text) { return NodeAttribute(AttributeData(std::string(text))); }
NodeAttribute ints_attribute(std::vector<std::int64_t> ints) { return NodeAttribute(AttributeData(std::move(ints))); }

class Raiser {
 public:
  Raiser(std::int64_t from, std::int64_t to, bool constants_as_nodes)
      : from_(from), to_(to), constants_as_nodes_(constants_as_nodes) {}

  void raise(Graph& graph) {
    for (Node* node : graph.nodes()) {
      for (Graph* inner : node->subgraphs()) raise(*inner);
      if (!node->domain.empty()) continue;
      // consumed_inputs is only a hint for the memory management of runtimes.
      if (crosses(6)) node->attributes.erase("consumed_inputs");
      if (form_changed(node->op_type, from_, to_)) raise_and_note(*node);
    }
  }

  [[nodiscard]] std::vector<RaisedNode> take_raised() { return std::move(raised_); }

 private:
  void raise_and_note(Node& node) {
    RaisedNode note{ref_of(node), {}, {}, false};
    for (const Value* input : node.inputs) {
      if (input != nullptr && !input->constant()) note.inputs.push_back(input->name);
    }
    for (const Value* output : node.used_outputs()) note.outputs.push_back(output->name);
    const std::string before = form_of(node);
    computes_anew_ = false;
    raise(node);
    note.computed_anew = computes_anew_;
    if (computes_anew_ || form_of(node) != before) raised_.push_back(std::move(note));
  }

  static std::string form_of(const Node& node) {
    std::string form = fmt::format("{} {} {}", node.op_type, node.inputs.size(), node.outputs.size());
    for (const auto& [name, value] : node.attributes) form += " " + name;
    return form;
  }

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

  /// Returns the attribute as a new constant for the input that replaces it. A reference to a function's attribute
  /// remains a reference.
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

  /// Softmax(x), which before opset 13 normalizes over all axes from `axis` on together, becomes
  /// Reshape(Softmax(Flatten(x)), Shape(x)), unless `axis` is the last axis.
  void raise_softmax(Node& node) {
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
    computes_anew_ = true;
    const std::string name = node.output()->name;
    Node* flat = graph.add_node("Flatten", {x}, {name + "_flat"}, &node);
    flat->attributes["axis"] = NodeAttribute(AttributeData(axis));
    Node* shape = graph.add_node("Shape", {x}, {name + "_shape"}, &node);
    Node* softmax = graph.add_node(node.op_type, {flat->output()}, {name + "_" + node.op_type}, &node);
    softmax->attributes["axis"] = NodeAttribute(AttributeData(std::int64_t{-1}));
    softmax->name = node.name;
    // The node itself becomes the Reshape, so that its output stays in place.
    node.op_type = "Reshape";
    node.name += node.name.empty() ? "" : "_shape";
    node.attributes.clear();
    graph.set_input(node, 0, softmax->output());
    graph.add_input_to(node, shape->output());
  }

  /// Removes the outputs after the first, which only serve training. Throws Error with `what`, a description of these
  /// outputs, if one of them is used.
  void keep_first_output(Node& node, const char* what) const {
    for (std::size_t i = 1; i < node.outputs.size(); ++i) {
      Value* output = node.outputs[i];
      if (node.is_output_used(i)) refuse(node, fmt::format("{} used", what));
      node.outputs[i] = nullptr;
      if (output == nullptr) continue;
      output->producer = nullptr;
      node.graph->remove_value(*output);
    }
    node.outputs.resize(std::min<std::size_t>(node.outputs.size(), 1));
  }

  /// Unsqueezes an input by appending dimensions of 1, so that its first dimension broadcasts to dimension `axis` of
  /// `of`.
  void align_left(Node& node, std::size_t input, const Value& of, std::int64_t axis) {
    Value* value = node.input(input);
    const auto rank = value->rank();
    if (!of.rank() || !rank) refuse(node, "the ranks of its inputs are unknown");
    const std::int64_t missing = *of.rank() - axis - *rank;
    if (missing < 0) refuse(node, fmt::format("input {} of rank {} does not fit at axis {}", input, *rank, axis));
    if (missing == 0) return;
    computes_anew_ = true;
    std::vector<std::int64_t> axes;
    for (std::int64_t i = 0; i < missing; ++i) axes.push_back(*rank + i);
    Node* wider = node.graph->add_node("Unsqueeze", {value}, {value->name + "_wider"}, &node);
    if (to_ >= 13) {
      node.graph->add_input_to(*wider, add_constant(*wider, value->name + "_axes", TensorData::from_ints(axes)));
    } else {
      wider->attributes["axes"] = ints_attribute(std::move(axes));
    }
    node.graph->set_input(node, input, wider->output());
  }

  /// Add(a, b){axis}, whose second input before opset 7 has the shape of the first or is broadcast from `axis` on,
  /// becomes Add(a, Unsqueeze(b)).
  void raise_binary(Node& node) {
    if (node.input(0) == nullptr || node.input(1) == nullptr) refuse(node, "it has fewer than two inputs");
    if (node.int_or("broadcast", 0) != 0 && node.attribute("axis") != nullptr && node.input(1)->rank() != 0) {
      std::int64_t axis = node.int_or("axis", 0);
      if (axis < 0) {
        if (!node.input(0)->rank()) refuse(node, "the ranks of its inputs are unknown");
        axis += *node.input(0)->rank();
      }
      align_left(node, 1, *node.input(0), axis);
    }
    node.attributes.erase("broadcast");
    node.attributes.erase("axis");
  }

  void raise_group_normalization(Node& node) {
    const Value* x = node.input(0);
    const std::int64_t groups = node.int_or("num_groups", 0);
    if (x == nullptr || !x->shape || x->shape->size() < 2 || !(*x->shape)[1].is_constant() || groups < 1) {
      refuse(node, "the number of its channels is unknown, or `num_groups` is below 1");
    }
    computes_anew_ = true;
    const std::int64_t each = (*x->shape)[1].value() / groups;
    Graph& graph = *node.graph;
    for (std::size_t i = 1; i < 3; ++i) {  // A scale and a bias per group are repeated for each channel.
      Value* value = node.input(i);
      if (value == nullptr) refuse(node, "it has no scale or bias");
      const auto after = [&](const char* op_type, const std::vector<std::int64_t>& ints) {
        Node* made = graph.add_node(op_type, {value}, {node.input(i)->name + "_each"}, &node);
        graph.add_input_to(*made, add_constant(*made, value->name + "_ints", TensorData::from_ints(ints)));
        value = made->output();
      };
      after("Reshape", {groups, 1});
      after("Expand", {groups, each});
      after("Reshape", {-1});
      graph.set_input(node, i, value);
    }
  }

  /// Upsample(x, scales), and Resize(x, scales) of opset 10, become Resize(x, _, scales).
  void raise_resize(Node& node) {
    if (to_ < 11) refuse(node, "it needs the Resize of operator set 11");
    computes_anew_ = true;
    const bool was_resize = node.is("Resize");
    node.op_type = "Resize";
    Value* scales = node.input(1);
    const std::string mode = node.string_or("mode", "nearest");
    // Upsample's scales are at least 1. A Resize of opset 10 that shrinks the image selects the pixel after the exact
    // position.
    std::string nearest = "floor";
    if (was_resize && mode == "nearest") {
      const auto tensor = scales == nullptr ? std::nullopt : scales->constant();
      const auto numbers = tensor ? tensor->numbers() : std::nullopt;
      if (!numbers) refuse(node, "its scales are not constant, and its rounding depends on them");
      const bool grows = std::any_of(numbers->begin(), numbers->end(), [](double scale) { return scale > 1; });
      const bool shrinks = std::any_of(numbers->begin(), numbers->end(), [](double scale) { return scale < 1; });
      if (grows && shrinks) refuse(node, "it enlarges the image in one direction and shrinks it in another");
      if (shrinks) nearest = "ceil";
    }
    node.graph->set_input(node, 1, nullptr);
    node.graph->set_input(node, 2, scales);
    if (mode == "bilinear") node.attributes["mode"] = text_attribute("linear");
    node.attributes["coordinate_transformation_mode"] = text_attribute("asymmetric");
    node.attributes["nearest_mode"] = text_attribute(nearest);
  }

  /// Rewrites a node as required by the changes of the operators in opsets up to 7.
  void raise_from_oldest(Node& node) {
    const std::string& type = node.op_type;
    if (std::find(binary_operators.begin(), binary_operators.end(), type) != binary_operators.end()) {
      raise_binary(node);
    } else if (type == "Gemm") {
      node.attributes.erase("broadcast");
    } else if (type == "PRelu") {  // PRelu has one slope per channel.
      if (node.input(0) == nullptr || node.input(1) == nullptr) refuse(node, "it has fewer than two inputs");
      if (!node.input(1)->shape) refuse(node, "the shape of its slope is unknown");
      const Shape& slope = *node.input(1)->shape;
      if (slope.size() == 1 && slope[0] != Dim(1)) align_left(node, 1, *node.input(0), 1);
    } else if (type == "BatchNormalization" || type == "Dropout") {
      if (node.int_or("is_test", 0) == 0) refuse(node, "attribute `is_test` is 0: it was exported for training");
      node.attributes.erase("is_test");
    } else if (has_trait(node, trait::recurrent)) {
      node.attributes.erase("output_sequence");
    } else if (type == "Upsample") {
      const std::vector<float> scales{1, 1, node.float_or("height_scale", 1), node.float_or("width_scale", 1)};
      node.attributes.erase("height_scale");
      node.attributes.erase("width_scale");
      node.attributes["scales"] = NodeAttribute(AttributeData(scales));
    } else if (type == "Cast" && crosses(6)) {
      const auto to = parse_element_type(node.string_or("to", ""));
      if (!to)
        refuse(node, fmt::format("attribute `to` is '{}', which is not the name of an element type",
                                 node.string_or("to", "")));
      node.attributes["to"] = NodeAttribute(AttributeData(static_cast<std::int64_t>(*to)));
    } else if (type == "Pad" && crosses(2)) {
      if (auto pads = node.ints("paddings")) node.attributes["pads"] = ints_attribute(*std::move(pads));
      node.attributes.erase("paddings");
    } else if ((type == "LpPool" || type == "GlobalLpPool") && crosses(2)) {
      const float p = node.float_or("p", 2);
      if (p != std::floor(p)) refuse(node, fmt::format("attribute `p` is {}, which is not an integer", p));
      node.attributes["p"] = NodeAttribute(AttributeData(static_cast<std::int64_t>(p)));
    } else if (type == "Concat" && crosses(4)) {
      node.attributes.try_emplace("axis", AttributeData(std::int64_t{1}));
    } else if (type == "Selu" && crosses(6)) {
      node.attributes.try_emplace("alpha", AttributeData(1.6732F));
      node.attributes.try_emplace("gamma", AttributeData(1.0507F));
    } else if (type == "Tile" && crosses(6)) {
      refuse(node, fmt::format("the definition of {} changed between these operator sets", type));
    }
  }

  void raise(Node& node) {
    if (crosses(7)) raise_from_oldest(node);
    const std::string& type = node.op_type;
    attributes_to_inputs(node);
    if (type == "Softmax" || type == "LogSoftmax" || type == "Hardmax") {
      if (crosses(13)) raise_softmax(node);
    } else if (type == "BatchNormalization") {
      if (node.int_or("spatial", 1) != 1)
        refuse(node, "attribute `spatial` is 0, which later operator sets do not support");
      node.attributes.erase("spatial");
      keep_first_output(node, "its training outputs are");
    } else if (type == "Dropout") {
      // Before opset 10 the mask contained floating-point values, and it was undefined if nothing was dropped.
      if (crosses(10)) keep_first_output(node, "its mask is");
    } else if (type == "Upsample") {
      if (crosses(10)) raise_resize(node);
    } else if (type == "Resize") {
      raise_resize(node);
    } else if (type == "RoiAlign") {
      if (crosses(16)) write_old_defaults(node, from_);
    } else if (type == "Scatter") {
      node.op_type = "ScatterElements";
    } else if (type == "Split" && crosses(18)) {
      if (node.input(1) == nullptr) {
        node.attributes["num_outputs"] = NodeAttribute(AttributeData(static_cast<std::int64_t>(node.outputs.size())));
      }
    } else if (type == "GridSample") {
      const std::string mode = node.string_or("mode", "bilinear");
      // The default mode, linear, is not written: the parsers of TensorRT-RTX 1.4 and 1.5 treat an unknown name as
      // nearest.
      if (mode == "bilinear") {
        node.attributes.erase("mode");
      } else if (mode == "bicubic") {
        node.attributes["mode"] = text_attribute("cubic");
      }
    } else if (type == "GroupNormalization") {
      raise_group_normalization(node);
    } else if (type == "DFT") {
      const std::int64_t axis = node.int_or("axis", 1);
      while (node.inputs.size() < 2) node.graph->add_input_to(node, nullptr);
      node.graph->set_input(node, 2,
                            add_constant(node, node.output() == nullptr ? "axis" : node.output()->name + "_axis",
                                         TensorData::scalar_of(ElementType::i64, static_cast<double>(axis))));
      node.attributes.erase("axis");
    } else if (type == "Scan") {
      refuse(node, fmt::format("the definition of {} changed between these operator sets", type));
    }
  }

  std::int64_t from_;
  std::int64_t to_;
  bool constants_as_nodes_;
  bool computes_anew_ = false;
  std::vector<RaisedNode> raised_;
};

}  // namespace

void write_old_defaults(Node& node, std::int64_t opset) {
  constexpr std::int64_t with_coordinates = 16;
  if (node.op_type != "RoiAlign" || opset == 0 || opset >= with_coordinates) return;
  node.attributes["coordinate_transformation_mode"] = text_attribute("output_half_pixel");
}

std::vector<RaisedNode> raise_graph_opset(Graph& graph, std::int64_t version, bool constants_as_nodes) {
  const std::int64_t from = graph.opset();
  if (from >= version) return {};
  Raiser raiser(from, version, constants_as_nodes);
  if (from != 0) raiser.raise(graph);
  graph.opset_imports[""] = version;
  return raiser.take_raised();
}

std::vector<RaisedNode> upgrade_opset(Model& model, std::int64_t version) {
  const auto is_old = [&](const Graph& graph) { return graph.opset() < version; };
  if (!is_old(model.graph()) && std::none_of(model.functions.begin(), model.functions.end(),
                                             [&](const auto& f) { return is_old(*f.second.body); })) {
    return {};
  }
  Model raised = model.clone();  // Works on a copy, so that the model is unchanged if a node is refused.
  std::vector<RaisedNode> nodes = raise_graph_opset(raised.graph(), version, false);
  for (auto& [key, function] : raised.functions) {
    if (function.body->opset() != 0) raise_graph_opset(*function.body, version, true);
  }
  model = std::move(raised);
  return nodes;
}

}  // namespace graft::onnx
