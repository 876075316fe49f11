// Visits a model in topological order and applies the shape rules. Subgraphs, functions and Graft's own operators are
// inferred here.
#include "onnx/shape_inference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/plugin_form.hpp"
#include "graft/operator/operator.hpp"
#include "onnx/branches.hpp"
#include "onnx/faults.hpp"
#include "onnx/functions.hpp"
#include "onnx/loop_condition.hpp"
#include "onnx/operator_calls.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "onnx/schema_types.hpp"
#include "onnx/shape_rules.hpp"
#include "onnx/standard_operators.hpp"

namespace graft::onnx {
namespace {

using InputShapes = std::map<std::string, Shape, std::less<>>;

constexpr std::size_t most_contents = 64;  // The largest number of elements of a tensor that is tracked by value.

class Inference {
 public:
  /// Creates an inference that calls `on_fault` for each node that contradicts itself. If `on_fault` is empty, the
  /// first such node ends the inference with an Error.
  explicit Inference(const OnFault& on_fault) : on_fault_(on_fault) {}

  void run(Graph& graph) {
    for (Node* node : graph.nodes()) run(*node);
  }

 private:
  void run(Node& node) {
    if (node.metadata.contains(fault_note)) return;
    try {
      infer(node);
    } catch (const Error& error) {
      if (!on_fault_) throw;
      on_fault_(node, error);
    }
  }

  void infer(Node& node) {
    NodeTypes types(node, contents_);
    try {
      if (is_of_onnxruntime(node)) {
        apply_onnxruntime_shape_rule(types);
      } else if (!node.domain.empty() || find_operator_for(node)) {
        run_operator(types);
      } else if (node.op_type == "If") {
        run_if(types);
      } else if (node.op_type == "Loop") {
        run_loop(types);
      } else if (node.op_type == "Scan") {
        run_scan(types);
      } else if (node.op_type == "SequenceMap") {
        run_sequence_map(types);
      } else if (const auto inner = node.subgraphs(); !inner.empty()) {
        for (Graph* graph : inner) run(*graph);
      } else {
        check_attribute_types(types);
        apply_shape_rule(types);
        apply_schema_types(types);
      }
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {  // Thrown for sizes that exceed 64 bits.
      types.fail(error.what());
    }
  }

  /// Sets the type of each output that has none to the type that ONNX's schema derives from an input.
  static void apply_schema_types(NodeTypes& types) {
    constexpr std::int64_t first_known = 13;
    const Node& node = types.node();
    const SchemaTypes* schema = nullptr;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == nullptr || node.outputs[i]->type || !node.outputs[i]->opaque.empty()) continue;
      if (schema == nullptr) schema = find_schema_types(node.op_type, std::max(types.opset(), first_known));
      if (schema == nullptr) return;
      const char letter = schema->output_letter(i);
      for (std::size_t input = 0; letter != '.' && input < node.inputs.size(); ++input) {
        const Value* value = node.inputs[input];
        if (value == nullptr || !value->type || schema->input_letter(input) != letter) continue;
        types.set_type(i, value->type);
        break;
      }
    }
  }

  /// Throws Error for an attribute of a wrong type, in the opsets for which the types of attributes are known.
  static void check_attribute_types(const NodeTypes& types) {
    constexpr std::int64_t first_known = 17;
    const Node& node = types.node();
    const OperatorSchema* schema = node.attributes.empty() ? nullptr : find_schema(node.op_type);
    if (schema == nullptr || types.opset() < first_known) return;
    for (const auto& [name, attribute] : node.attributes) {
      const std::optional<AttributeType> allowed = schema->attribute_type(name);
      if (!allowed || attribute.get<AttributeReference>() != nullptr) continue;
      const std::optional<AttributeValue> value = attribute.value();
      if (value && type_of(*value) == *allowed) continue;
      types.fail(
          fmt::format("attribute `{}` has type {}; it must have type {}", name, attribute.kind(), to_string(*allowed)));
    }
  }

  /// Returns the values of a shape input as dimensions, which are unknown if only their number is known.
  static std::optional<Shape> values_of_shape_input(const NodeTypes& types, std::size_t input) {
    if (auto known = types.contents(input)) return known;
    const Shape* shape = types.shape(input);
    if (shape == nullptr || shape->size() > 1) return std::nullopt;
    const Dim count = shape->empty() ? Dim(1) : shape->front();
    if (!count.is_constant() || count.value() > Extents::max_rank) return std::nullopt;
    Shape values;
    for (std::int64_t i = 0; i < count.value(); ++i) values.push_back(unknown_dim());
    return values;
  }

  static void run_operator(NodeTypes& types) {
    const auto op = make_operator(types.node());
    if (op == nullptr) return;
    const Node& node = types.node();
    const std::vector<Value*> inputs = operator_inputs(node);
    std::vector<DType> dtypes;
    std::vector<Shape> shapes;
    for (std::size_t port = 0; port < inputs.size(); ++port) {
      const auto at = std::find(node.inputs.begin(), node.inputs.end(), inputs[port]);
      const auto i = static_cast<std::size_t>(at - node.inputs.begin());
      const bool is_left_out = inputs[port] == nullptr && inputs != node.inputs;
      const auto dtype = is_left_out     ? dtype_left_out(op->type(), inputs, port)
                         : types.type(i) ? to_dtype(*types.type(i))
                                         : std::nullopt;
      if (dtype) dtypes.push_back(*dtype);
      if (is_left_out) {
        shapes.push_back({0});
      } else if (is_shape_input(op->type(), node, i)) {
        if (auto values = values_of_shape_input(types, i)) shapes.push_back(std::move(*values));
      } else if (types.shape(i) != nullptr) {
        shapes.push_back(*types.shape(i));
      }
    }
    // The outputs of such a plugin have types and shapes once the node has become the operator and nodes around it.
    const DropIn* drop_in = find_operator_for(node).drop_in;
    const bool has_same_outputs = drop_in == nullptr || !has_own_outputs(drop_in->plugin_name);
    if (const auto outputs = op->type().output_dtypes(dtypes); outputs && has_same_outputs) {
      for (std::size_t i = 0; i < outputs->size(); ++i) types.set_type(i, to_element_type((*outputs)[i]));
    }
    if (shapes.size() != inputs.size()) return;
    std::vector<Shape> outputs;
    if (Status status = op->infer_shapes(shapes, outputs); !status.ok()) types.fail(status.message());
    if (!has_same_outputs) return;
    outputs = without_data_sizes(std::move(outputs));
    for (std::size_t i = 0; i < outputs.size(); ++i) types.set_shape(i, outputs[i]);
  }

  /// Infers the branches of an If and returns the branches that can run. Exporters write one branch with a Squeeze for
  /// size 1 and one for other sizes; a branch that contradicts the sizes is not the one that runs.
  std::vector<Graph*> possible_branches(const NodeTypes& types) {
    std::vector<Graph*> branches = types.node().subgraphs();
    if (Graph* taken = subgraph(types.node(), taken_branch(types.numbers(0)))) branches = {taken};
    std::vector<Graph*> possible;
    std::optional<Error> fault;
    for (Graph* branch : branches) {
      try {
        run(*branch);
        possible.push_back(branch);
      } catch (const Error& error) {
        if (!fault) fault = error;
      }
    }
    if (possible.empty() && fault) throw Error(*fault);
    return possible;
  }

  void run_if(NodeTypes& types) {
    Node& node = types.node();
    const std::vector<Graph*> branches = possible_branches(types);
    if (branches.size() == 1) {
      for (std::size_t i = 0; i < std::min(node.outputs.size(), branches[0]->outputs().size()); ++i) {
        const Value& output = *branches[0]->outputs()[i];
        if (output.type) types.set_type(i, output.type);
        if (output.shape) types.set_shape(i, *output.shape);
        if (output.container) types.set_container(i, *output.container);
      }
      return;
    }
    if (branches.size() != 2) return;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (i >= branches[0]->outputs().size() || i >= branches[1]->outputs().size()) return;
      const Value& a = *branches[0]->outputs()[i];
      const Value& b = *branches[1]->outputs()[i];
      if (a.type && b.type && *a.type == *b.type) types.set_type(i, a.type);
      if (auto shape = either_of(a.shape, b.shape)) types.set_shape(i, *std::move(shape));
      if (!a.container || !b.container || a.container->type != b.container->type) continue;
      types.set_container(i, {.kind = a.container->kind,
                              .type = a.container->type,
                              .shape = either_of(a.container->shape, b.container->shape)});
    }
  }

  /// Returns the number of iterations of a Loop that no condition ends early, or nothing if it is not known.
  static std::optional<std::int64_t> iterations_of(const NodeTypes& types, const Graph& body) {
    const auto count = types.ints(0);
    if (!count || count->size() != 1) return std::nullopt;
    const auto is_true = [](const std::optional<std::vector<double>>& numbers) {
      return numbers && numbers->size() == 1 && numbers->front() != 0;
    };
    if (types.has_input(1) && !is_true(types.numbers(1))) return std::nullopt;
    return keeps_condition(body) ? std::optional(std::max<std::int64_t>(0, count->front())) : std::nullopt;
  }

  void run_loop(NodeTypes& types) {
    Node& node = types.node();
    Graph* body = subgraph(node, "body");
    if (body == nullptr) return;
    const auto& inputs = body->inputs();
    const auto& outputs = body->outputs();
    if (inputs.size() < 2 || inputs.size() != node.inputs.size() || outputs.empty()) {
      run(*body);
      return;
    }
    inputs[0]->type = ElementType::i64;
    inputs[1]->type = ElementType::boolean;
    // Exporters also declare them with one axis of size 1, and ONNX Runtime computes them so.
    for (Value* scalar : {inputs[0], inputs[1]}) {
      if (scalar->shape != Shape{Dim(1)}) scalar->shape = Shape{};
    }
    const std::size_t carried = inputs.size() - 2;
    for (std::size_t i = 0; i < carried; ++i) {
      // The shape of a loop-carried value may change between iterations.
      if (const auto type = types.type(i + 2); type && !inputs[i + 2]->type) inputs[i + 2]->type = type;
      if (const Container* container = types.container(i + 2)) {
        inputs[i + 2]->container = Container{.kind = container->kind, .type = container->type, .shape = {}};
      }
    }
    run(*body);
    const std::optional<std::int64_t> iterations = iterations_of(types, *body);
    for (std::size_t i = 0; i < node.outputs.size() && i + 1 < outputs.size(); ++i) {
      const Value& value = *outputs[i + 1];
      types.set_type(i, value.type);
      if (value.container) {
        Container container = *value.container;
        // Without iterations the initial value is the result.
        const Container* initial = i < carried ? types.container(i + 2) : nullptr;
        container.shape = initial == nullptr ? std::nullopt : either_of(container.shape, initial->shape);
        types.set_container(i, container);
      }
      if (i < carried && types.shape(i + 2) != nullptr) {  // Without iterations the initial value is the result.
        if (auto shape = either_of(value.shape, *types.shape(i + 2))) types.set_shape(i, *std::move(shape));
      }
      if (i >= carried && value.shape) {
        Shape shape{iterations ? Dim(*iterations) : unknown_dim()};
        shape.insert(shape.end(), value.shape->begin(), value.shape->end());
        types.set_shape(i, std::move(shape));
      }
    }
  }

  /// Returns entry `i` of a list of axes of a Scan as an index into a shape of rank `rank`; 0 if the list is absent,
  /// and nothing if the axis is not below the rank.
  static std::optional<std::size_t> scan_axis(const Node& scan, std::string_view list, std::size_t i,
                                              std::size_t rank) {
    const auto axes = scan.ints(list);
    std::int64_t axis = axes && i < axes->size() ? (*axes)[i] : 0;
    if (axis < 0) axis += static_cast<std::int64_t>(rank);
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return std::nullopt;
    return static_cast<std::size_t>(axis);
  }

  void run_scan(NodeTypes& types) {
    constexpr std::int64_t since_batches_are_gone = 9;
    Node& node = types.node();
    Graph* body = subgraph(node, "body");
    if (body == nullptr) return;
    const auto& inputs = body->inputs();
    const auto& outputs = body->outputs();
    const std::int64_t scanned = node.int_or("num_scan_inputs", 0);
    if (types.opset() < since_batches_are_gone || scanned < 0 || scanned > static_cast<std::int64_t>(inputs.size()) ||
        inputs.size() != node.inputs.size() || outputs.size() != node.outputs.size()) {
      run(*body);
      return;
    }
    const std::size_t carried = inputs.size() - static_cast<std::size_t>(scanned);
    Dim length = unknown_dim();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (const auto type = types.type(i); type && !inputs[i]->type) inputs[i]->type = type;
      if (i < carried || types.shape(i) == nullptr) continue;
      Shape shape = *types.shape(i);
      const auto axis = scan_axis(node, "scan_input_axes", i - carried, shape.size());
      if (!axis) continue;
      const auto at = shape.begin() + static_cast<std::ptrdiff_t>(*axis);
      if (!length.is_constant()) length = *at;
      shape.erase(at);
      if (!inputs[i]->shape) inputs[i]->shape = std::move(shape);
    }
    run(*body);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Value& value = *outputs[i];
      types.set_type(i, value.type);
      if (!value.shape) continue;
      if (i < carried) {  // Without iterations the initial value is the result.
        if (types.shape(i) == nullptr) continue;
        if (auto shape = either_of(value.shape, *types.shape(i))) types.set_shape(i, *std::move(shape));
        continue;
      }
      Shape shape = *value.shape;
      const auto axis = scan_axis(node, "scan_output_axes", i - carried, shape.size() + 1);
      if (!axis) continue;
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), length);
      types.set_shape(i, std::move(shape));
    }
  }

  void run_sequence_map(NodeTypes& types) {
    Graph* body = subgraph(types.node(), "body");
    if (body == nullptr) return;
    for (std::size_t i = 0; i < body->inputs().size(); ++i) {
      Value& input = *body->inputs()[i];
      const Container* container = types.container(i);
      const std::optional<ElementType> type = container == nullptr ? types.type(i) : container->type;
      if (!input.type) input.type = type;
      if (input.shape) continue;
      if (container != nullptr) {
        input.shape = shape_of_element(*container);
      } else if (types.shape(i) != nullptr) {
        input.shape = *types.shape(i);
      }
    }
    run(*body);
    for (std::size_t i = 0; i < body->outputs().size(); ++i) {
      const Value& output = *body->outputs()[i];
      if (!output.type) continue;
      types.set_container(i, {.kind = Container::Kind::sequence, .type = *output.type, .shape = output.shape});
    }
  }

  const OnFault& on_fault_;
  ContentsMap contents_;
};

using ByName = std::unordered_map<std::string, const Value*>;

void collect(const Graph& graph, ByName& by_name) {
  for (const Value* value : graph.values()) by_name.emplace(value->name, value);
  graph.for_each_node([&](const Node& node) {
    for (const Graph* inner : node.subgraphs()) {
      for (const Value* value : inner->values()) by_name.emplace(value->name, value);
    }
  });
}

bool calls_functions(const Model& model) {
  bool calls = false;
  model.graph().for_each_node(
      [&](const Node& node) { calls = calls || (model.find_function(node) != nullptr && !find_operator_for(node)); });
  return calls;
}

/// Returns the node of the model that corresponds to a node of the copy, or that calls the function containing it. The
/// copy keeps the names of the model's own values. Returns null if no value of the model depends on the node.
Node* node_in_model(const Node& inlined, const ByName& of_the_model) {
  std::vector<const Node*> waiting{&inlined};
  std::unordered_set<const Node*> seen;
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    if (!seen.insert(node).second) continue;
    for (const Value* output : node->outputs) {
      if (output == nullptr) continue;
      const auto found = of_the_model.find(output->name);
      if (found != of_the_model.end() && found->second->producer != nullptr) return found->second->producer;
      for (const Use& use : output->uses) waiting.push_back(use.node);
    }
  }
  return nullptr;
}

/// Infers types and shapes on a copy of the model in which calls are replaced with the bodies of functions, and copies
/// the results back to the model's own values. Calls `on_fault` for each node that contradicts itself; if it is empty,
/// the first such node ends the inference with an Error.
void infer_through_functions(Model& model, const OnFault& on_fault) {
  Model flat = model.clone();
  InlineOptions options;
  options.which = is_plain_call;
  inline_functions(flat, options);
  ByName of_the_model;
  if (on_fault) collect(model.graph(), of_the_model);
  const OnFault on_inlined_fault = [&](const Node& node, const Error& error) {
    Node* found = node_in_model(node, of_the_model);
    if (found == nullptr) throw error;  // NOLINT(cert-err60-cpp,misc-throw-by-value-catch-by-reference)
    on_fault(*found, error);
  };
  const OnFault none;
  Inference(on_fault ? on_inlined_fault : none).run(flat.graph());
  ByName by_name;
  collect(flat.graph(), by_name);
  const auto take_over = [&](const Graph& graph) {
    for (Value* value : graph.values()) {
      const auto found = by_name.find(value->name);
      if (found == by_name.end()) continue;
      value->type = found->second->type;
      value->shape = found->second->shape;
      value->container = found->second->container;
    }
  };
  take_over(model.graph());
  model.graph().for_each_node([&](Node& node) {
    for (const Graph* inner : node.subgraphs()) take_over(*inner);
  });
}

}  // namespace

// ---- NodeTypes

std::optional<ElementType> NodeTypes::type(std::size_t i) const {
  const Value* value = node_.input(i);
  return value == nullptr ? std::nullopt : value->type;
}

const Shape* NodeTypes::shape(std::size_t i) const {
  const Value* value = node_.input(i);
  return value == nullptr || !value->shape ? nullptr : &*value->shape;
}

const Container* NodeTypes::container(std::size_t i) const {
  const Value* value = node_.input(i);
  return value == nullptr || !value->container ? nullptr : &*value->container;
}

std::optional<Contents> NodeTypes::contents(std::size_t i) const {
  const Value* value = node_.input(i);
  if (value == nullptr) return std::nullopt;
  const auto known = contents_.find(value);
  if (known != contents_.end()) return known->second;
  const auto constant = value->constant();
  if (!constant || constant->element_count() > static_cast<std::int64_t>(most_contents)) return std::nullopt;
  const auto numbers = constant->ints();
  if (!numbers) return std::nullopt;
  return Contents(numbers->begin(), numbers->end());
}

std::optional<std::vector<std::int64_t>> NodeTypes::ints(std::size_t i) const {
  const auto known = contents(i);
  if (known) {
    std::vector<std::int64_t> values;
    for (const Dim& dim : *known) {
      if (!dim.is_constant()) return std::nullopt;
      values.push_back(dim.value());
    }
    return values;
  }
  return constant_ints(node_.input(i));
}

std::optional<std::vector<std::int64_t>> NodeTypes::ints(std::string_view attribute, std::size_t input) const {
  if (node_.attribute(attribute) != nullptr) return node_.ints(attribute);
  return ints(input);
}

std::optional<std::vector<double>> NodeTypes::numbers(std::size_t i) const {
  const auto constant = node_.input(i) == nullptr ? std::nullopt : node_.input(i)->constant();
  return constant ? constant->numbers() : std::nullopt;
}

std::size_t NodeTypes::axis(std::int64_t value, std::size_t rank) const {
  const auto size = static_cast<std::int64_t>(rank);
  if (value < -size || value >= size) {
    fail(
        fmt::format("axis {} is out of range; it must be between {} and {} for rank {}", value, -size, size - 1, rank));
  }
  return static_cast<std::size_t>(value < 0 ? value + size : value);
}

void NodeTypes::set_type(std::size_t output, std::optional<ElementType> type) {
  Value* value = node_.output(output);
  if (value == nullptr || !type) return;
  if (value->type && *value->type != *type) {
    fail(fmt::format("its output '{}' is declared as {}, but it is {}", value->name, to_string(*value->type),
                     to_string(*type)));
  }
  value->type = type;
}

void NodeTypes::set_shape(std::size_t output, Shape shape) {
  Value* value = node_.output(output);
  if (value == nullptr) return;
  if (shape.size() > highest_rank)
    fail(fmt::format("its output '{}' has {} dimensions; it may have at most {}", value->name, shape.size(),
                     highest_rank));
  for (Dim& dim : shape) {
    dim = bounded(dim);
    if (!dim.is_constant() || dim.value() >= 0) continue;
    // A branch that never runs may have invalid sizes.
    if (node_.graph != nullptr && node_.graph->parent() != nullptr)
      dim = unknown_dim();
    else
      fail(fmt::format("its output '{}' has the dimension {}; every dimension must be at least 0", value->name,
                       dim.value()));
  }
  if (value->shape) {
    const bool same_rank = value->shape->size() == shape.size();
    for (std::size_t i = 0; same_rank && i < shape.size(); ++i) shape[i] = merge(shape[i], (*value->shape)[i]);
  }
  value->shape = std::move(shape);
}

void NodeTypes::set_contents(std::size_t output, Contents contents) {
  const Value* value = node_.output(output);
  if (value == nullptr || contents.size() > most_contents) return;
  for (Dim& dim : contents) dim = bounded(dim);
  contents_[value] = std::move(contents);
}

void NodeTypes::set_container(std::size_t output, const Container& container) {
  if (Value* value = node_.output(output)) value->container = container;
}

void NodeTypes::copy(std::size_t input, std::size_t output) {
  if (container(input) != nullptr) set_container(output, *container(input));
  set_type(output, type(input));
  if (shape(input) != nullptr) set_shape(output, *shape(input));
}

void NodeTypes::fail(const std::string& message) const { throw Error(fmt::format("{}: {}", describe(node_), message)); }

Dim bounded(const Dim& dim) {
  constexpr int most_parts = 64;
  int parts = 0;
  const std::function<bool(const Dim&)> is_small = [&](const Dim& part) {
    if (++parts > most_parts) return false;
    if (part.is_constant() || part.kind() == Dim::Kind::symbol) return true;
    return is_small(part.left()) && is_small(part.right());
  };
  return is_small(dim) ? dim : unknown_dim();
}

namespace {

bool has_unknown(const Dim& dim) {
  if (dim.is_constant()) return false;
  if (dim.kind() == Dim::Kind::symbol) return is_unknown(dim);
  return has_unknown(dim.left()) || has_unknown(dim.right());
}

}  // namespace

Dim merge(const Dim& inferred, const Dim& declared) {
  if (is_unknown(inferred)) return declared;
  return has_unknown(inferred) && declared.is_constant() ? declared : inferred;
}

std::optional<Shape> either_of(const std::optional<Shape>& a, const std::optional<Shape>& b) {
  if (!a || !b || a->size() != b->size()) return std::nullopt;
  Shape shape;
  for (std::size_t i = 0; i < a->size(); ++i) shape.push_back((*a)[i] == (*b)[i] ? (*a)[i] : unknown_dim());
  return shape;
}

std::optional<Shape> shape_of_element(const Container& container) {
  std::optional<Shape> shape = container.shape;
  if (!shape) return shape;
  for (Dim& dim : *shape) {
    if (has_unknown(dim)) dim = unknown_dim();
  }
  return shape;
}

Dim broadcast(const Dim& a, const Dim& b, const NodeTypes& types) {
  if (a == b || b == Dim(1)) return a;
  if (a == Dim(1)) return b;
  if (a.is_constant() && b.is_constant()) {
    types.fail(fmt::format("dimensions {} and {} cannot be broadcast; they must be equal, or one of them must be 1",
                           a.value(), b.value()));
  }
  if (a.is_constant()) return a;
  if (b.is_constant()) return b;
  return unknown_dim();  // Either size may be 1.
}

// ---- Entry points

Error with_next_step(const Error& error, std::string_view step) {
  const std::string message = error.what();
  if (error.kind() != Error::Kind::bad_input || message.find('\n') != std::string::npos) return error;
  return {error.kind(), fmt::format("{}\n{}", message, step)};
}

std::size_t infer_shapes(Model& model) { return infer_around_faults(model, {}); }

std::size_t infer_around_faults(Model& model, const OnFault& on_fault) {
  try {
    if (calls_functions(model)) {
      infer_through_functions(model, on_fault);
    } else {
      Inference(on_fault).run(model.graph());
    }
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", model.source, error.what()));
  }
  const auto values = model.graph().values();
  return static_cast<std::size_t>(
      std::count_if(values.begin(), values.end(), [](const Value* v) { return !v->type || !v->shape; }));
}

namespace {

/// Replaces the shapes of inputs with `input_shapes`; a symbol in a replaced shape also gets its new value in other
/// inputs. Throws Error for a name that is not an input, and for a shape that contradicts the declared one.
void give_shapes(Model& model, const InputShapes& input_shapes) {
  std::unordered_map<std::string, Dim> bound;  // The new values of symbols.
  for (const auto& [name, shape] : input_shapes) {
    Value* input = model.graph().find_local(name);
    if (input == nullptr || !input->is_input) {
      std::string names;
      for (const Value* value : model.graph().inputs()) names += (names.empty() ? "" : ", ") + value->name;
      throw Error(fmt::format("{}: the model has no input '{}'; {}", model.source, name,
                              names.empty() ? "it has no inputs" : "its inputs are " + names));
    }
    bool agrees = !input->shape || input->shape->size() == shape.size();
    for (std::size_t i = 0; agrees && input->shape && i < shape.size(); ++i) {
      const Dim& declared = (*input->shape)[i];
      agrees = !declared.is_constant() || !shape[i].is_constant() || declared.value() == shape[i].value();
    }
    if (!agrees) {
      throw Error(fmt::format("{}: input '{}' cannot have the shape {}; the model allows {}", model.source, name,
                              to_string(shape), to_string(*input->shape)));
    }
    for (std::size_t i = 0; input->shape && i < shape.size(); ++i) {
      const Dim& declared = (*input->shape)[i];
      const bool is_named = declared.kind() == Dim::Kind::symbol && !is_unknown(declared);
      if (is_named && declared != shape[i]) bound.emplace(declared.name(), shape[i]);
    }
    input->shape = shape;
  }
  // Other inputs that share a symbol share its new value.
  for (Value* other : model.graph().inputs()) {
    if (bound.empty() || !other->shape || input_shapes.contains(other->name)) continue;
    for (Dim& dim : *other->shape) {
      if (dim.kind() != Dim::Kind::symbol) continue;
      const auto found = bound.find(dim.name());
      if (found != bound.end()) dim = found->second;
    }
  }
}

/// The shapes that a file declares for the outputs of nodes.
using Declarations = std::unordered_map<Value*, std::optional<Shape>>;

/// Removes and returns the declared shapes of nodes' outputs. Their declared types stay, because a wrong type is a
/// fault of the file.
Declarations forget_declared(Model& model) {
  Declarations declared;
  const auto forget = [&](const Graph& graph) {
    for (Value* value : graph.values()) {
      if (value->producer == nullptr || !value->opaque.empty()) continue;
      declared.emplace(value, std::move(value->shape));
      value->shape.reset();
    }
  };
  forget(model.graph());
  model.graph().for_each_node([&](Node& node) {
    for (const Graph* inner : node.subgraphs()) forget(*inner);
  });
  return declared;
}

/// Restores the declared shapes of outputs whose shape is still unknown. If the caller set the shapes of inputs
/// (`are_shapes_given`), dynamic dimensions become unknown, because their symbols may now have fixed values. Returns
/// whether any shape was restored.
bool restore_unknown(const Declarations& declared, bool are_shapes_given) {
  bool any = false;
  for (const auto& [value, was] : declared) {
    if (value->shape || !was) continue;
    value->shape = was;
    for (Dim& dim : *value->shape) {
      if (are_shapes_given && !dim.is_constant()) dim = unknown_dim();
    }
    any = true;
  }
  return any;
}

}  // namespace

std::size_t infer_shapes(Model& model, const InputShapes& input_shapes) {
  give_shapes(model, input_shapes);
  forget_declared(model);
  return infer_shapes(model);
}

std::size_t infer_around_faults(Model& model, const InputShapes& input_shapes, const OnFault& on_fault) {
  give_shapes(model, input_shapes);
  const Declarations declared = forget_declared(model);
  const std::size_t unknown = infer_around_faults(model, on_fault);
  return restore_unknown(declared, !input_shapes.empty()) ? infer_around_faults(model, on_fault) : unknown;
}

}  // namespace graft::onnx
