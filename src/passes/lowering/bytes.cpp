// Pass widen_bytes: computes u8 tensors between layers in another type.
//
//   Cast(Transpose(image), f32)    becomes   Transpose(Cast(image, f32))
//   Mul(Cast(mask, u8), 255)       becomes   Cast(Mul(Cast(mask, i32), 255), u8)
//   Cast(Cast(mask, u8), f32)      becomes   Cast(mask, f32)
//
// TensorRT accepts u8 only from an input of the network into Cast, and from Cast to an output of the network. The pass
// collects the u8 tensors that nodes link with each other and rewrites such a group as a whole: its tensors get the
// type to which all readers cast them if its nodes only move elements, and i32 otherwise. Both hold every byte. Sums,
// differences and products are taken modulo 256 where they may leave u8, as are numbers that are cast to u8.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "onnx/branches.hpp"
#include "onnx/opset.hpp"
#include "onnx/schema.hpp"
#include "onnx/shape_inference.hpp"
#include "passes/lowering/lowering.hpp"
#include "passes/lowering/surroundings.hpp"
#include "passes/lowering/value_ranges.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

using onnx::ElementType;
using onnx::Graph;
using onnx::Node;
using onnx::Value;

bool is_byte(const Value* value) { return value != nullptr && value->type == ElementType::u8; }

/// Returns whether a value has type u8 and is the output of a node or an input of its graph, and not a constant.
bool is_computed_byte(const Value* value) {
  return is_byte(value) && !value->constant() && (value->producer != nullptr || value->is_input);
}

bool is_cast(const Node& node) { return onnx::is_any_of(node, {"Cast", "CastLike"}); }

/// Returns whether a value is an output of the main graph.
bool is_returned(const Value& value) {
  const auto& outputs = value.graph->outputs();
  return value.graph->parent() == nullptr && std::find(outputs.begin(), outputs.end(), &value) != outputs.end();
}

/// The kind of a node that reads or returns u8. It decides how the node is changed when its u8 tensors get a wider
/// type.
enum class Handling : std::uint8_t {
  unknown,
  moves,     ///< The node copies elements, whatever their type.
  reals,     ///< The node needs floating-point numbers in TensorRT or in ONNX Runtime.
  computes,  ///< The node computes with integers, and its results stay in 0 to 255.
  wraps,     ///< The node computes with integers, modulo 256.
  reads,     ///< The node reads u8, and its results have another type.
  branches,  ///< The node is an If.
  enters,    ///< The node casts another type to u8.
  leaves,    ///< The node casts u8 to another type.
  fills,     ///< The node is a ConstantOfShape.
};

/// Returns whether a node is a linear Resize, which computes weighted sums. ONNX Runtime truncates its u8 results.
bool is_linear_resize(const Node& node) { return node.is("Resize") && node.string_or("mode", "nearest") == "linear"; }

Handling handling_of(const Node& node) {
  if (is_cast(node)) {
    const bool reads_byte = is_byte(node.input(0));
    if (is_byte(node.output())) return reads_byte ? Handling::moves : Handling::enters;
    return reads_byte ? Handling::leaves : Handling::unknown;
  }
  if (!node.domain.empty()) return Handling::unknown;
  if (node.is("If")) return Handling::branches;
  if (node.is("ConstantOfShape")) return Handling::fills;
  if (onnx::is_any_of(node, {"MaxPool", "DepthToSpace", "SpaceToDepth"})) return Handling::reals;
  if (node.is("Resize")) {
    // Cubic samples may leave u8, which each runtime handles differently.
    return node.string_or("mode", "nearest") == "cubic" ? Handling::unknown : Handling::reals;
  }
  if (onnx::is_any_of(node, {"Where", "Pad", "ScatterElements", "ScatterND", "TopK", "OneHot"})) {
    return node.string_or("reduction", "none") == "none" ? Handling::moves : Handling::unknown;
  }
  if (onnx::is_any_of(node, {"Div", "Mod", "Max", "Min", "Clip", "ReduceMax", "ReduceMin"})) return Handling::computes;
  if (onnx::is_any_of(node, {"Add", "Sub", "Mul"})) return Handling::wraps;
  if (has_trait(node, onnx::trait::compares) || onnx::is_any_of(node, {"ArgMax", "ArgMin", "Shape", "Size", "NonZero"}))
    return Handling::reads;
  const bool moves = has_trait(node, onnx::trait::moves_data) && !has_trait(node, onnx::trait::sized_by_data);
  return moves ? Handling::moves : Handling::unknown;
}

/// Returns whether a node only moves elements and ONNX Runtime runs it in f16 and bf16 too.
bool is_moved_in_half(const Node& node) {
  return is_cast(node) || reads_dimensions(node) ||
         (has_trait(node, onnx::trait::rearranges) && handling_of(node) == Handling::moves) ||
         onnx::is_any_of(node, {"If", "Slice", "Concat", "Split", "Gather", "Expand"});
}

/// Returns whether TensorRT accepts that `reader` reads `input`, a u8 input of the network, without a rewrite.
bool is_accepted_reader(const Node& reader, const Value& input) {
  if (reader.graph != input.graph) return false;
  return is_cast(reader) || reads_dimensions(reader) || (reader.is("Identity") && reader.output()->uses.empty()) ||
         reader.is("DequantizeLinear");
}

/// Returns whether TensorRT refuses a u8 tensor because of the node that computes it or the nodes that read it.
bool is_refused(const Value& value) {
  if (!is_computed_byte(&value)) return false;
  if (value.producer == nullptr) {
    return value.graph->parent() == nullptr &&
           std::any_of(value.uses.begin(), value.uses.end(),
                       [&](const onnx::Use& use) { return !is_accepted_reader(*use.node, value); });
  }
  const Node& node = *value.producer;
  if (is_returned(value) && value.uses.empty()) {
    const bool is_copy = node.is("Identity") && node.input(0)->is_input;
    return !(is_cast(node) || is_copy || node.is("QuantizeLinear"));
  }
  return !is_imported_as_i32(value) || is_returned(value);
}

/// Returns whether a node is an operator of quantized networks (QuantizeLinear, QLinearConv, MatMulInteger ...), in
/// which u8 values have a scale.
bool is_quantized(const Node& node) {
  return has_trait(node, onnx::trait::scales_integers) || node.op_type.starts_with("QLinear") ||
         onnx::is_any_of(node, {"MatMulInteger", "ConvInteger"});
}

/// A node that prevents the rewrite of its group, and the reason as a clause for messages.
struct Obstacle {
  Node* node = nullptr;
  std::string why;
};

/// A set of u8 tensors that are connected by nodes which need the same type for inputs and outputs, and these nodes.
/// All tensors of a group are changed to one other type together.
class Group {
 public:
  explicit Group(Value& start) {
    add(&start);
    while (!waiting_.empty()) {
      Value& value = *waiting_.back();
      waiting_.pop_back();
      if (value.producer != nullptr) visit(*value.producer);
      for (const onnx::Use& use : value.uses) {
        const bool stays = value.producer == nullptr && !is_cast(*use.node) && is_accepted_reader(*use.node, value);
        if (!stays) visit(*use.node);
      }
      follow_branches(value);
    }
  }

  [[nodiscard]] const std::vector<Value*>& values() const { return values_; }
  [[nodiscard]] const std::vector<Node*>& nodes() const { return nodes_; }
  [[nodiscard]] bool has(const Value* value) const { return known_.contains(value); }

  /// Returns the first node that prevents the rewrite of the group, or nothing if the group can be rewritten.
  [[nodiscard]] std::optional<Obstacle> find_obstacle() const {
    for (Node* node : nodes_) {
      if (handling_of(*node) != Handling::unknown) continue;
      return Obstacle{node, fmt::format("{} is not rewritten for another type than u8", onnx::describe(*node))};
    }
    for (const Value* value : values_) {
      if (value->producer != nullptr || value->graph->parent() == nullptr || value->uses.empty()) continue;
      return Obstacle{value->uses.front().node,
                      fmt::format("'{}' is handed to the body of a Loop or Scan", value->name)};
    }
    return std::nullopt;
  }

  /// Returns the type that replaces u8 in this group: the type to which all Casts of the group convert if it is
  /// suitable, otherwise i32 or f32.
  [[nodiscard]] ElementType type() const {
    std::optional<ElementType> common;
    for (const Node* node : nodes_) {
      const Handling handling = handling_of(*node);
      if (handling == Handling::leaves) {
        const ElementType to = *node->output()->type;
        if (common && *common != to) return ElementType::i32;
        common = to;
      } else if (handling == Handling::computes || handling == Handling::wraps ||
                 (handling == Handling::reads && !reads_dimensions(*node))) {
        return ElementType::i32;
      }
    }
    if (std::any_of(values_.begin(), values_.end(), [](const Value* value) { return is_returned(*value); }))
      return ElementType::i32;
    if (common == ElementType::f16 || common == ElementType::bf16) {
      return std::all_of(nodes_.begin(), nodes_.end(), [](const Node* node) { return is_moved_in_half(*node); })
                 ? *common
                 : ElementType::f32;
    }
    constexpr std::array exact = {ElementType::f32, ElementType::i32, ElementType::i64};
    const bool is_exact = common && std::find(exact.begin(), exact.end(), *common) != exact.end();
    return is_exact ? *common : ElementType::i32;
  }

 private:
  void add(Value* value) {
    if (is_computed_byte(value) && known_.insert(value).second) {
      values_.push_back(value);
      waiting_.push_back(value);
    }
  }

  void visit(Node& node) {
    if (!seen_.insert(&node).second) return;
    nodes_.push_back(&node);
    const Handling handling = handling_of(node);
    if (handling == Handling::unknown || handling == Handling::leaves || handling == Handling::enters) return;
    std::for_each(node.inputs.begin(), node.inputs.end(), [&](Value* value) { add(value); });
    std::for_each(node.outputs.begin(), node.outputs.end(), [&](Value* value) { add(value); });
  }

  /// Adds the tensors that are connected to `value` through an If: the branch outputs from which the If selects
  /// `value`, and the output of the If whose branch returns `value`.
  void follow_branches(Value& value) {
    if (value.producer != nullptr && value.producer->is("If")) {
      for (const Graph* branch : value.producer->subgraphs()) {
        if (value.output_index < branch->outputs().size()) add(branch->outputs()[value.output_index]);
      }
    }
    if (value.output_count == 0) return;
    for_each_branch_returning(value, [&](Node& owner, std::size_t index) {
      visit(owner);
      add(owner.output(index));
    });
  }

  /// Calls f(node, index) for each node with a body, such as an If, whose body returns `value`. `index` is the index of
  /// this output of the body.
  template <class F>
  static void for_each_branch_returning(const Value& value, const F& f) {
    value.graph->root().for_each_node([&](Node& node) {
      for (const Graph* body : node.subgraphs()) {
        for (std::size_t i = 0; i < body->outputs().size(); ++i) {
          if (body->outputs()[i] == &value) f(node, i);
        }
      }
    });
  }

  std::vector<Value*> values_;
  std::vector<Node*> nodes_;
  std::vector<Value*> waiting_;
  std::unordered_set<const Value*> known_;
  std::unordered_set<const Node*> seen_;
};

/// Changes the tensors of a group from u8 to a wider type and inserts the Casts that are needed at its boundary.
class Widener {
 public:
  Widener(const Group& group, ElementType type) : group_(group), type_(type) {}

  void run() {
    find_ranges();
    for (Value* value : group_.values()) {
      if (value->producer == nullptr) {
        wide_[value] = cast_after(*value->graph, nullptr, *value, type_, value->name);
      } else if (handling_of(*value->producer) == Handling::enters) {
        wide_[value] = entered(*value->producer, *value);
      }
    }
    const std::vector<Node*> nodes = group_.nodes();
    std::vector<Handling> handling;
    for (const Node* node : nodes) handling.push_back(handling_of(*node));
    for (std::size_t i = 0; i < nodes.size(); ++i) read_wide(*nodes[i], handling[i]);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (handling[i] != Handling::enters && handling[i] != Handling::leaves) write_wide(*nodes[i], handling[i]);
    }
    for (const auto& [value, wide] : wide_) replace_in_branches(*value, *wide);
    for (Value* value : group_.values()) {
      if (is_returned(*value) && value->type != ElementType::u8) return_byte(*value);
    }
    for (Graph* graph : graphs_) graph->topological_sort();
  }

 private:
  /// Collects in `wrapping_` the results that may lie outside 0 to 255 in the wider type. Must run before nodes change,
  /// because the ranges are derived from the original nodes.
  void find_ranges() {
    for (const Node* node : group_.nodes()) {
      if (node->output() == nullptr) continue;
      const Value& output = *node->output();
      const Handling handling = handling_of(*node);
      bool may_leave = false;
      if (handling == Handling::enters) {
        const auto range = find_range(*node->input(0));
        may_leave = !range || !range->is_within(bytes);
      } else if (handling == Handling::wraps) {
        may_leave = !stays_in_bytes(*node);
      }
      if (may_leave) wrapping_.insert(&output);
    }
  }

  static bool stays_in_bytes(const Node& node) {
    if (node.inputs.size() != 2 || node.input(0) == nullptr || node.input(1) == nullptr) return false;
    const ValueRange a = find_range(*node.input(0)).value_or(bytes);
    const ValueRange b = find_range(*node.input(1)).value_or(bytes);
    if (node.is("Add")) return a.high + b.high <= bytes.high;
    if (node.is("Sub")) return a.low - b.high >= bytes.low;
    return a.high * b.high <= bytes.high;
  }

  /// Changes a Cast or CastLike into a Cast to the type `to`. Removes the second input, from which a CastLike reads the
  /// type.
  static void make_cast(Node& node, ElementType to) {
    for (std::size_t i = node.inputs.size(); i > 1; --i) node.graph->remove_last_input(node);
    node.op_type = "Cast";
    node.attributes["to"] = onnx::AttributeData(static_cast<std::int64_t>(to));
  }

  Value* add(Graph& graph, Node* before, const std::string& op_type, std::vector<Value*> inputs, ElementType type,
             const Value& like) {
    graphs_.insert(&graph);
    Value* output = graph.add_node(op_type, std::move(inputs), {like.name + "/wide"}, before)->output();
    output->type = type;
    output->shape = like.shape;
    return output;
  }

  Value* cast_after(Graph& graph, Node* before, Value& value, ElementType to, const std::string& hint) {
    if (value.type == to) return &value;
    graphs_.insert(&graph);
    Node* cast = graph.add_node("Cast", {&value}, {hint + "/wide"}, before);
    cast->attributes["to"] = onnx::AttributeData(static_cast<std::int64_t>(to));
    cast->output()->type = to;
    cast->output()->shape = value.shape;
    return cast->output();
  }

  /// Adds a Mod by 256 before the node `before`, and returns its result. The result has the sign of the divisor, so -1
  /// becomes 255 as in u8.
  Value* wrapped(Graph& graph, Node* before, Value& value) {
    Value* modulus = graph.add_constant(
        "modulus", onnx::TensorData::from_numbers(*value.type, {}, {static_cast<double>(bytes.high + 1)}));
    return add(graph, before, "Mod", {&value, modulus}, *value.type, value);
  }

  /// Adds nodes that replace a Cast to u8: they compute the same values as `result`, the output of the Cast, but in the
  /// type of the group. If the input may leave the range 0 to 255, they compute it modulo 256. Returns the new result.
  Value* entered(Node& cast, const Value& result) {
    Graph& graph = *cast.graph;
    Value& source = *cast.input(0);
    make_cast(cast, ElementType::u8);
    const bool is_integer = source.type == ElementType::i32 || source.type == ElementType::i64;
    const bool may_leave = wrapping_.contains(&result);
    if (!may_leave && !onnx::is_floating_point(*source.type)) {
      return cast_after(graph, &cast, source, type_, result.name);
    }
    Value* integers = is_integer ? &source : cast_after(graph, &cast, source, ElementType::i32, result.name);
    if (may_leave) integers = wrapped(graph, &cast, *integers);
    return cast_after(graph, &cast, *integers, type_, result.name);
  }

  /// Returns the type in which a node of the group computes: f32 for Handling::reals, otherwise the type of the group.
  [[nodiscard]] ElementType computed_type(Handling handling) const {
    return handling == Handling::reals ? ElementType::f32 : type_;
  }

  /// Replaces the u8 inputs of a node by the wider tensors, and its u8 constants by constants in the type of the group.
  void read_wide(Node& node, Handling handling) {
    const bool is_beside_input =
        handling == Handling::leaves && node.input(0)->producer == nullptr && node.graph == node.input(0)->graph;
    if (is_beside_input || handling == Handling::enters || node.is("If")) return;
    const ElementType type = computed_type(handling);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Value* value = node.inputs[i];
      if (!is_byte(value) && !(value != nullptr && group_.has(value))) continue;
      if (is_cast(node) && i == 1) continue;  // CastLike reads the type of this one; it becomes a Cast
      Value* read = value;
      if (const auto constant = value->constant()) {
        read = node.graph->add_constant(value->name,
                                        onnx::TensorData::from_numbers(type, constant->dims, *constant->numbers()));
      } else {
        if (const auto wide = wide_.find(value); wide != wide_.end()) read = wide->second;
        if (type != type_) read = cast_after(*node.graph, &node, *read, type, value->name);
        graphs_.insert(node.graph);
      }
      if (read != value) node.graph->set_input(node, i, read);
    }
  }

  /// Changes the type of the outputs of a node that belong to the group to the type of the group.
  void write_wide(Node& node, Handling handling) {
    if (handling == Handling::fills) {
      const auto* value =
          node.attribute("value") == nullptr ? nullptr : node.attribute("value")->get<onnx::TensorData>();
      if (value == nullptr || !is_byte(node.output())) return;
      node.attributes["value"] =
          onnx::AttributeData(onnx::TensorData::from_numbers(type_, value->dims, *value->numbers()));
    }
    if (is_cast(node)) make_cast(node, type_);  // from u8 to u8
    for (Value* output : node.outputs) {
      if (!group_.has(output)) continue;
      const ElementType computed = computed_type(handling);
      output->type = computed;
      Value* result = output;
      const std::vector<onnx::Use> readers = output->uses;
      Graph& graph = *node.graph;
      if (is_linear_resize(node)) result = add(graph, nullptr, "Floor", {result}, computed, *output);
      if (computed != type_) result = cast_after(graph, nullptr, *result, type_, output->name);
      if (wrapping_.contains(output)) result = wrapped(graph, nullptr, *result);
      if (result == output) continue;
      graphs_.insert(&graph);
      for (const onnx::Use& use : readers) use.node->graph->set_input(*use.node, use.index, result);
      wide_[output] = result;
    }
  }

  /// Replaces `value` by `wide` as an output of the bodies that return it, if the matching output of the node around
  /// the body belongs to the group.
  void replace_in_branches(Value& value, Value& wide) {
    if (value.output_count == 0) return;
    value.graph->root().for_each_node([&](Node& node) {
      for (Graph* body : node.subgraphs()) {
        for (std::size_t i = 0; i < body->outputs().size(); ++i) {
          if (body->outputs()[i] == &value && group_.has(node.output(i))) body->replace_output(i, wide);
        }
      }
    });
  }

  /// Adds a Cast to u8 for an output of the network, so that the output keeps its name and type.
  void return_byte(Value& value) {
    Graph& graph = *value.graph;
    const auto found = wide_.find(&value);
    Value& wide = found == wide_.end() ? value : *found->second;
    Value* narrow = cast_after(graph, nullptr, wide, ElementType::u8, value.name);
    const std::vector<Value*> outputs = graph.outputs();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == &value) graph.replace_output(i, *narrow);
    }
    const std::string name = value.name;
    graph.rename(value, graph.unique_name(name + "/wide"));
    graph.rename(*narrow, name);
  }

  const Group& group_;
  ElementType type_;
  std::unordered_map<Value*, Value*> wide_;
  std::unordered_set<const Value*> wrapping_;
  std::unordered_set<Graph*> graphs_;
};

/// Replaces u8 constants that branches of an If return by constants of type `type`, if the output of the If belongs to
/// the group.
void widen_constants_of_branches(const Group& group, ElementType type) {
  for (Node* node : group.nodes()) {
    if (!node->is("If")) continue;
    for (Graph* branch : node->subgraphs()) {
      for (std::size_t i = 0; i < branch->outputs().size(); ++i) {
        const auto constant = branch->outputs()[i]->constant();
        if (!constant || constant->type != ElementType::u8 || !group.has(node->output(i))) continue;
        branch->replace_output(
            i, *branch->add_constant(branch->outputs()[i]->name,
                                     onnx::TensorData::from_numbers(type, constant->dims, *constant->numbers())));
      }
    }
  }
}

/// Rewrites a group to another type, and returns whether it was rewritten. If a node prevents that, the report lists
/// the reason, except for operators of quantized networks.
bool widen(Rewriter& rewriter, const Group& group) {
  if (const auto obstacle = group.find_obstacle()) {
    if (is_quantized(*obstacle->node)) return false;  // not a picture or a mask
    rewriter.near_miss("u8 tensors in another type",
                       {.node = obstacle->node, .matched_nodes = 1, .pattern_nodes = 1, .reason = obstacle->why});
    return false;
  }
  const ElementType type = group.type();
  Rewriter::Subject subject;
  for (const Node* node : group.nodes()) subject.nodes.push_back(ref_of(*node));
  rewriter.record(std::move(subject), fmt::format("the same nodes in {}", to_string(type)),
                  "TensorRT accepts u8 only from an input of the network into Cast, and from Cast to an output",
                  fmt::format("by definition: {} holds every integer from 0 to 255, and results outside of this range "
                              "are taken modulo 256",
                              to_string(type)));
  Widener(group, type).run();
  widen_constants_of_branches(group, type);
  return true;
}

}  // namespace

void widen_bytes(Rewriter& rewriter) {
  if (rewriter.model().graph().opset() < onnx::working_opset) return;
  bool widened = false;
  std::unordered_set<const Value*> seen;
  for (Graph* graph : rewriter.graphs()) {
    for (Value* value : graph->values()) {
      if (seen.contains(value) || !is_refused(*value)) continue;
      const Group group(*value);
      seen.insert(group.values().begin(), group.values().end());
      widened = widen(rewriter, group) || widened;
    }
  }
  if (!widened) return;
  rewriter.end();
  onnx::infer_shapes(rewriter.model());
}

}  // namespace graft::passes
