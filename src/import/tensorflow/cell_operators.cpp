// Converts the recurrent cells that TensorFlow computes in one kernel: a step of an LSTM or a GRU, and a whole LSTM.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "import/messages.hpp"
#include "import/tensorflow/node_converter.hpp"

namespace graft::tensorflow {
namespace {

/// The results of one time step of an LSTM, in the order of TensorFlow's outputs: the gates after their activations,
/// the cell's state, its hyperbolic tangent and the output.
enum Part : std::size_t { input_gate, cell, forget_gate, output_gate, candidate, squashed_cell, output, part_count };

using Parts = std::array<onnx::Value*, part_count>;

/// The inputs of an LSTM node that are the same in every time step, such as the weights, and the node's attributes.
struct Lstm {
  onnx::Value* weights = nullptr;  ///< [inputs + units, 4 * units]
  onnx::Value* bias = nullptr;
  std::array<onnx::Value*, 3> peepholes = {};  ///< For the input, the forget and the output gate; null if unused.
  std::int64_t units = 0;
  std::int64_t inputs = 0;
  float forget_bias = 0;
  float clip = 0;  ///< The largest absolute value of the cell's state, or 0.
  bool is_forget_second = false;
  onnx::ElementType type = onnx::ElementType::f32;

  /// Returns the index of the forget gate among the four gates, whose columns are concatenated in the weights.
  /// candidate_at() returns the index of the candidate.
  [[nodiscard]] std::int64_t forget_at() const { return is_forget_second ? 1 : 2; }
  [[nodiscard]] std::int64_t candidate_at() const { return is_forget_second ? 2 : 1; }
};

/// Reads the weights, the bias and the attributes of an LSTM node. `weights` is the index of the first of these inputs.
/// Throws Error if their shapes do not fit.
Lstm read_lstm(NodeConverter& node, std::size_t weights) {
  const auto size = [&](std::size_t i, std::size_t rank, std::size_t axis) {
    const onnx::Value* value = node.input(i);
    if (!value->shape || value->shape->size() != rank || !(*value->shape)[axis].is_constant()) {
      node.fail(fmt::format("input {} ('{}') must have {} dimensions of known size", i, value->name, rank));
    }
    return (*value->shape)[axis].value();
  };
  Lstm lstm;
  lstm.weights = node.input(weights);
  lstm.bias = node.input(weights + 4);
  const std::int64_t rows = size(weights, 2, 0);
  const std::int64_t columns = size(weights, 2, 1);
  lstm.units = columns / 4;
  lstm.inputs = rows - lstm.units;
  if (columns % 4 != 0 || lstm.units < 1 || lstm.inputs < 1) {
    node.fail(fmt::format(
        "the weights (input {}) have the shape [{}, {}]; they must have 4 columns for each unit, and a row for each "
        "input and for each unit",
        weights, rows, columns));
  }
  if (size(weights + 4, 1, 0) != columns)
    node.fail(fmt::format("the bias (input {}) must have {} elements, as many as the weights have columns", weights + 4,
                          columns));
  if (node.flag_or("use_peephole", false)) {
    for (std::size_t i = 0; i < lstm.peepholes.size(); ++i) lstm.peepholes[i] = node.input(weights + 1 + i);
  }
  lstm.is_forget_second = node.op() == "BlockLSTMV2";
  lstm.forget_bias = lstm.is_forget_second ? 0 : node.float_or("forget_bias", 1);
  lstm.clip = std::max(node.float_or("cell_clip", lstm.is_forget_second ? 0.0F : 3.0F), 0.0F);
  lstm.type = lstm.weights->type.value_or(onnx::ElementType::f32);
  return lstm;
}

onnx::Value* joined(NodeBuilder& node, const std::vector<onnx::Value*>& parts, std::int64_t axis) {
  return node.add("Concat", parts, {{"axis", axis}});
}

/// Adds one step for a batch `x` [batch, inputs] and the states before it.
Parts add_step(NodeBuilder& node, const Lstm& lstm, onnx::Value* x, onnx::Value* cell_before,
               onnx::Value* output_before) {
  onnx::Value* sums =
      node.add("Add", {node.add("MatMul", {joined(node, {x, output_before}, 1), lstm.weights}), lstm.bias});
  const auto gates = node.add_many("Split", {sums, node.ints_of(Ints(4, lstm.units))}, 4, {{"axis", std::int64_t{1}}});
  const auto gate = [&](std::int64_t at, std::size_t peephole, onnx::Value* state) {
    onnx::Value* sum = gates[static_cast<std::size_t>(at)];
    if (at == lstm.forget_at() && lstm.forget_bias != 0) {
      sum = node.add("Add", {sum, node.scalar_of(lstm.forget_bias, lstm.type)});
    }
    onnx::Value* weights = lstm.peepholes.at(peephole);
    if (weights != nullptr) sum = node.add("Add", {sum, node.add("Mul", {state, weights})});
    return node.add("Sigmoid", {sum});
  };
  Parts parts{};
  parts[input_gate] = gate(0, 0, cell_before);
  parts[forget_gate] = gate(lstm.forget_at(), 1, cell_before);
  parts[candidate] = node.add("Tanh", {gates[static_cast<std::size_t>(lstm.candidate_at())]});
  onnx::Value* added = node.add("Mul", {parts[candidate], parts[input_gate]});
  parts[cell] = node.add("Add", {added, node.add("Mul", {cell_before, parts[forget_gate]})});
  if (lstm.clip > 0) {
    parts[cell] =
        node.add("Clip", {parts[cell], node.scalar_of(-lstm.clip, lstm.type), node.scalar_of(lstm.clip, lstm.type)});
  }
  parts[output_gate] = gate(3, 2, parts[cell]);
  parts[squashed_cell] = node.add("Tanh", {parts[cell]});
  parts[output] = node.add("Mul", {parts[squashed_cell], parts[output_gate]});
  return parts;
}

/// LSTMBlockCell(x, cell, output, weights ...) becomes one step of an LSTM.
void lstm_step(NodeConverter& node) {
  const Lstm lstm = read_lstm(node, 3);
  const Parts parts = add_step(node, lstm, node.input(0), node.input(1), node.input(2));
  for (std::size_t i = 0; i < part_count; ++i) node.give(i, parts[i]);
}

/// Returns whether the length of the sequences (input 0) is equal to the first size of x (input 1).
bool is_whole(const NodeConverter& node) {
  const auto length = node.dims_in(node.input(0));
  const onnx::Value* x = node.input(1);
  return length && length->size() == 1 && x->shape && !x->shape->empty() && (*length)[0] == (*x->shape)[0];
}

/// Adds an LSTM of ONNX, which has no limit for the state of its cell and returns only the last of these states.
void add_layer(NodeConverter& node, const Lstm& lstm) {
  const std::array<std::int64_t, 4> order{0, 3, lstm.forget_at(), lstm.candidate_at()};  // as ONNX orders the gates
  const auto in_order = [&](onnx::Value* value, std::int64_t axis, float forget_bias) {
    std::vector<onnx::Value*> gates;
    for (const std::int64_t at : order) {
      onnx::Value* gate = node.add("Slice", {value, node.ints_of({at * lstm.units}),
                                             node.ints_of({(at + 1) * lstm.units}), node.ints_of({axis})});
      if (at == lstm.forget_at() && forget_bias != 0)
        gate = node.add("Add", {gate, node.scalar_of(forget_bias, lstm.type)});
      gates.push_back(gate);
    }
    return joined(node, gates, axis);
  };
  const auto in_front = [&](onnx::Value* value) { return node.add("Unsqueeze", {value, node.ints_of({0})}); };
  onnx::Value* weights = node.transpose(in_order(lstm.weights, 1, 0), {1, 0});
  const auto columns = [&](std::int64_t begin, std::int64_t end) {
    return in_front(node.add("Slice", {weights, node.ints_of({begin}), node.ints_of({end}), node.ints_of({1})}));
  };
  onnx::Value* zeros = node.add("Expand", {node.scalar_of(0, lstm.type), node.ints_of({4 * lstm.units})});
  onnx::Value* bias = joined(node, {in_order(lstm.bias, 0, lstm.forget_bias), zeros}, 0);
  onnx::Value* x = node.input(1);
  onnx::Value* lengths = nullptr;
  if (!is_whole(node)) {
    onnx::Value* batch = node.slice_1d(node.shape_of(x), 1, 2);
    lengths = node.add("Expand", {node.cast(node.input(0), onnx::ElementType::i32), batch});
  }
  std::vector<onnx::Value*> inputs{x,
                                   columns(0, lstm.inputs),
                                   columns(lstm.inputs, lstm.inputs + lstm.units),
                                   in_front(bias),
                                   lengths,
                                   in_front(node.input(3)),
                                   in_front(node.input(2))};
  if (lstm.peepholes[0] != nullptr) {
    inputs.push_back(in_front(joined(node, {lstm.peepholes[0], lstm.peepholes[2], lstm.peepholes[1]}, 0)));
  }
  const auto results = node.add_many("LSTM", inputs, 3, {{"hidden_size", lstm.units}});
  node.give(cell, results[2]);
  node.give(output, node.add("Squeeze", {results[0], node.ints_of({1})}));
}

/// Adds a Loop over the time steps. Its results are those outputs of the node that the network reads.
void add_loop(NodeConverter& node, const Lstm& lstm) {
  onnx::Value* x = node.input(1);
  const auto along_time = [&](onnx::Value* value) { return node.reshape(value, {}); };
  onnx::Value* turns = x->shape && !x->shape->empty() && (*x->shape)[0].is_constant()
                           ? node.scalar_of(static_cast<double>((*x->shape)[0].value()), onnx::ElementType::i64)
                           : along_time(node.slice_1d(node.shape_of(x), 0, 1));
  onnx::Value* condition = node.constant_of(onnx::TensorData::scalar_of(onnx::ElementType::boolean, 1));
  std::vector<std::size_t> read;
  for (std::size_t i = 0; i < part_count; ++i) {
    if (node.use(i) != Use::nothing) read.push_back(i);
  }
  onnx::Node* loop = node.graph().add_node("Loop", {turns, condition, node.input(2), node.input(3)},
                                           std::vector<std::string>(2 + read.size(), node.name() + ":Loop"));
  loop->name = node.name();
  auto owned = std::make_unique<onnx::Graph>(loop->graph);
  onnx::Graph& body = *owned;
  body.name = "body";
  loop->attributes["body"] = onnx::NodeAttribute(onnx::AttributeData(std::move(owned)));
  NodeBuilder builder = node.in_body(body);
  const auto add_input = [&](const char* what, onnx::ElementType type, const std::optional<Shape>& shape) {
    onnx::Value* value = body.add_input(body.unique_name(node.name() + ":" + what));
    value->type = type;
    value->shape = shape;
    return value;
  };
  onnx::Value* turn = add_input("turn", onnx::ElementType::i64, Shape{});
  onnx::Value* going = add_input("going", onnx::ElementType::boolean, Shape{});
  onnx::Value* cell_before = add_input("cell", lstm.type, node.input(2)->shape);
  onnx::Value* output_before = add_input("output", lstm.type, node.input(3)->shape);
  onnx::Value* item = builder.add("Gather", {x, turn}, {{"axis", std::int64_t{0}}});
  const Parts parts = add_step(builder, lstm, item, cell_before, output_before);
  std::vector<onnx::Value*> results{going, parts[cell], parts[output]};
  onnx::Value* is_inside = nullptr;
  if (!is_whole(node)) {
    is_inside = builder.add("Less", {turn, along_time(node.cast(node.input(0), onnx::ElementType::i64))});
  }
  for (const std::size_t i : read) {
    onnx::Value* part = parts[i];
    if (is_inside != nullptr) part = builder.add("Where", {is_inside, part, builder.scalar_of(0, lstm.type)});
    results.push_back(part);
  }
  // Each result of a body is a tensor of its own.
  for (onnx::Value* result : results) body.add_output(*builder.add("Identity", {result}));
  for (std::size_t i = 0; i < 2; ++i) {
    loop->outputs[i]->type = lstm.type;
    loop->outputs[i]->shape = node.input(2 + i)->shape;
  }
  for (std::size_t i = 0; i < read.size(); ++i) {
    onnx::Value* value = loop->outputs[2 + i];
    value->type = lstm.type;
    const auto& shape = parts[read[i]]->shape;
    if (shape && x->shape && !x->shape->empty()) {
      value->shape = Shape{(*x->shape)[0]};
      value->shape->insert(value->shape->end(), shape->begin(), shape->end());
    }
    node.give(read[i], value);
  }
}

/// BlockLSTM(length, x, cell, output, weights ...) becomes an LSTM if the network reads no other results than the
/// outputs and the cell's last state, and otherwise a Loop.
void lstm(NodeConverter& node) {
  const Lstm lstm = read_lstm(node, 4);
  bool is_layer = lstm.clip == 0;
  for (std::size_t i = 0; i < part_count; ++i) {
    if (i == output || node.use(i) == Use::nothing) continue;
    is_layer = is_layer && i == cell && node.use(i) == Use::last && is_whole(node);
  }
  if (is_layer) {
    add_layer(node, lstm);
  } else {
    add_loop(node, lstm);
  }
}

/// GRUBlockCell(x, state, weights of both gates, weights of the candidate, their biases) becomes one step of a GRU.
void gru_step(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  onnx::Value* state = node.input(1);
  const onnx::Value* weights = node.input(3);
  if (!weights->shape || weights->shape->size() != 2 || !(*weights->shape)[1].is_constant()) {
    node.fail(fmt::format("input 3 ('{}') must have 2 dimensions of known size", weights->name));
  }
  const std::int64_t units = (*weights->shape)[1].value();
  const auto product = [&](onnx::Value* before, std::size_t with, std::size_t bias) {
    onnx::Value* sum = node.add("MatMul", {joined(node, {x, before}, 1), node.input(with)});
    return node.add("Add", {sum, node.input(bias)});
  };
  onnx::Value* gates = node.add("Sigmoid", {product(state, 2, 4)});
  const auto parts = node.add_many("Split", {gates, node.ints_of({units, units})}, 2, {{"axis", std::int64_t{1}}});
  onnx::Value* candidate = node.add("Tanh", {product(node.add("Mul", {state, parts[0]}), 3, 5)});
  onnx::Value* rest = node.add("Sub", {node.scalar_of(1, node.type(0)), parts[1]});
  onnx::Value* next = node.add("Add", {node.add("Mul", {rest, candidate}), node.add("Mul", {parts[1], state})});
  node.give(0, parts[0]);
  node.give(1, parts[1]);
  node.give(2, candidate);
  node.give(3, next);
}

}  // namespace

OperatorEntries cell_operators() {
  static const std::vector<OperatorEntry> entries =
      entries_of({{lstm, "BlockLSTM BlockLSTMV2"}, {gru_step, "GRUBlockCell"}, {lstm_step, "LSTMBlockCell"}});
  return entries;
}

}  // namespace graft::tensorflow
