// Pass move_transposes: moves a Transpose below a node that treats all elements alike, and merges two Transposes in a
// row.
//
//   Relu(Transpose(x))                           becomes   Transpose(Relu(x))
//   Concat<axis=3>(Transpose(x), Transpose(y))   becomes   Transpose(Concat<axis=1>(x, y)), with perm=[0, 2, 3, 1]
//   Transpose<perm=p>(Transpose<perm=q>(x))      becomes   one Transpose of x, or x
//   Reshape(Transpose(x), shape)                 becomes   Reshape(x, shape), where the Transpose only moves axes of 1
//
// Networks whose channels come last (TensorFlow) are read with a Transpose before each convolution and one after it.
// Moved down, the second Transpose of one layer meets the first of the next, and both are removed (remove_identities).
// The last line applies to 7x7 images of one channel and to pooled images of 1x1.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "onnx/schema.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

using Permutation = std::vector<std::int64_t>;

Permutation inverse(const Permutation& permutation) {
  Permutation result(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    result[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
  }
  return result;
}

bool is_permutation_of(const Permutation& permutation, std::size_t rank) {
  Permutation sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  Permutation all(rank);
  std::iota(all.begin(), all.end(), 0);
  return sorted == all;
}

/// Returns the permutation of the Transpose that computes a value. Returns nothing if no Transpose of the same graph
/// does, if its attribute `perm` is absent or invalid, or if its rank is unknown.
std::optional<Permutation> transposition_of(const onnx::Value* value) {
  if (value == nullptr || value->producer == nullptr || !value->producer->is("Transpose")) return std::nullopt;
  const onnx::Node& node = *value->producer;
  auto permutation = node.ints("perm");
  const auto rank = node.input(0) == nullptr ? std::nullopt : node.input(0)->rank();
  if (!permutation || !rank || node.graph != value->graph) return std::nullopt;
  if (!is_permutation_of(*permutation, static_cast<std::size_t>(*rank))) return std::nullopt;
  return permutation;
}

constexpr std::int64_t most_constant = 1 << 16;

/// Returns the tensor to which the Transpose `permutation` has to be applied to get `tensor`. First adds axes of size 1
/// in front, up to the rank of the permutation. Returns nothing for a constant that is empty, has a higher rank or has
/// more than most_constant elements.
std::optional<onnx::TensorData> before_transposition(const onnx::TensorData& tensor, const Permutation& permutation) {
  const std::size_t rank = permutation.size();
  const std::int64_t count = tensor.element_count();
  if (tensor.dims.size() > rank || count > most_constant || count == 0) return std::nullopt;
  if (tensor.element_count() == 1) return tensor;
  const auto numbers = tensor.numbers();
  if (!numbers) return std::nullopt;
  std::vector<std::int64_t> dims(rank - tensor.dims.size(), 1);
  dims.insert(dims.end(), tensor.dims.begin(), tensor.dims.end());
  std::vector<std::int64_t> strides(rank, 1);
  for (std::size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  const Permutation back = inverse(permutation);
  std::vector<std::int64_t> result_dims;
  std::vector<std::int64_t> steps;
  for (const std::int64_t axis : back) {
    result_dims.push_back(dims[static_cast<std::size_t>(axis)]);
    steps.push_back(strides[static_cast<std::size_t>(axis)]);
  }
  std::vector<double> moved;
  moved.reserve(numbers->size());
  std::vector<std::int64_t> at(rank, 0);
  std::int64_t from = 0;
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    moved.push_back((*numbers)[static_cast<std::size_t>(from)]);
    for (std::size_t axis = rank; axis-- > 0;) {
      from += steps[axis];
      if (++at[axis] < result_dims[axis]) break;
      from -= result_dims[axis] * steps[axis];
      at[axis] = 0;
    }
  }
  return onnx::TensorData::from_numbers(tensor.type, result_dims, moved);
}

/// The input that a node reads after it was moved before the Transpose: a value or a constant.
struct ReplacedInput {
  std::string value;                       ///< The name of a value; empty for a constant or an absent input.
  std::optional<onnx::TensorData> tensor;  ///< The constant, if the input is one.
};

/// The inputs and attributes that a node has after it was moved before the Transpose that computes its input. `axis`
/// and `axes` replace the attributes of these names if they are set.
struct Move {
  std::vector<ReplacedInput> inputs;  ///< Both members are empty for an absent input.
  std::optional<std::int64_t> axis;
  std::optional<std::vector<std::int64_t>> axes;
  std::vector<Permutation> outputs;  ///< The permutation after each output; empty for no Transpose.
};

ReplacedInput keep(const onnx::Value* value) { return {value == nullptr ? "" : value->name, std::nullopt}; }
ReplacedInput ints(const std::vector<std::int64_t>& values) { return {"", onnx::TensorData::from_ints(values)}; }

std::optional<std::int64_t> moved_axis(std::int64_t axis, const Permutation& permutation) {
  const auto rank = static_cast<std::int64_t>(permutation.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  return permutation[static_cast<std::size_t>(axis)];
}

std::optional<std::vector<std::int64_t>> moved_axes(const std::vector<std::int64_t>& axes,
                                                    const Permutation& permutation) {
  std::vector<std::int64_t> result;
  for (const std::int64_t axis : axes) {
    const auto moved = moved_axis(axis, permutation);
    if (!moved) return std::nullopt;
    result.push_back(*moved);
  }
  return result;
}

/// Returns the permutation without the axes `gone` of the input, with the remaining axes renumbered from 0; empty if
/// the remaining axes stay in order.
Permutation without_axes(const Permutation& permutation, const std::vector<std::int64_t>& gone) {
  Permutation left;
  for (const std::int64_t axis : permutation) {
    if (std::find(gone.begin(), gone.end(), axis) == gone.end()) left.push_back(axis);
  }
  Permutation result;
  for (const std::int64_t axis : left) {
    result.push_back(std::count_if(left.begin(), left.end(), [&](std::int64_t other) { return other < axis; }));
  }
  return std::is_sorted(result.begin(), result.end()) ? Permutation{} : result;
}

std::optional<Move> move_elementwise(const onnx::Node& node, const Permutation& permutation) {
  Move move;
  for (const onnx::Value* input : node.inputs) {
    const auto found = transposition_of(input);
    if (found == permutation) {
      move.inputs.push_back(keep(input->producer->input(0)));
      continue;
    }
    if (input == nullptr) {
      move.inputs.push_back(keep(nullptr));
      continue;
    }
    const bool is_one = input->shape && std::all_of(input->shape->begin(), input->shape->end(), [](const Dim& dim) {
                          return dim.is_constant() && dim.value() == 1;
                        });
    if (is_one && input->shape->size() <= permutation.size()) {
      move.inputs.push_back(keep(input));
      continue;
    }
    const auto constant = input->constant();
    auto moved = constant ? before_transposition(*constant, permutation) : std::nullopt;
    if (!moved) return std::nullopt;
    move.inputs.push_back({"", std::move(moved)});
  }
  move.outputs = {permutation};
  return move;
}

/// Returns how to move a Concat before the Transpose if each input is a constant or the result of a Transpose with this
/// permutation; otherwise nothing.
std::optional<Move> move_concat(const onnx::Node& node, const Permutation& permutation) {
  Move move;
  for (const onnx::Value* input : node.inputs) {
    if (transposition_of(input) == permutation) {
      move.inputs.push_back(keep(input->producer->input(0)));
      continue;
    }
    const auto constant = input == nullptr ? std::nullopt : input->constant();
    if (!constant || constant->dims.size() != permutation.size() || constant->element_count() == 1) return std::nullopt;
    auto moved = before_transposition(*constant, permutation);
    if (!moved) return std::nullopt;
    move.inputs.push_back({"", std::move(moved)});
  }
  move.axis = moved_axis(node.int_or("axis", 0), permutation);
  move.outputs = {permutation};
  return move.axis ? std::optional(move) : std::nullopt;
}

std::optional<Move> move_reduction(const onnx::Node& node, const Permutation& permutation) {
  auto axes = node.ints("axes");
  const bool from_input = !axes && node.input(1) != nullptr;
  if (from_input) axes = constant_ints(node.input(1));
  if (!axes || axes->empty()) return std::nullopt;
  const auto moved = moved_axes(*axes, permutation);
  if (!moved) return std::nullopt;
  Move move;
  move.inputs.push_back(keep(node.input(0)->producer->input(0)));
  if (from_input) {
    move.inputs.push_back(ints(*moved));
  } else {
    move.axes = moved;
  }
  const bool keeps = node.int_or("keepdims", 1) != 0;
  move.outputs = {keeps ? permutation : without_axes(permutation, *moved)};
  return move;
}

std::optional<Move> move_squeeze(const onnx::Node& node, const Permutation& permutation) {
  const auto axes = constant_ints(node.input(1));
  if (!axes || axes->empty()) return std::nullopt;
  const auto moved = moved_axes(*axes, permutation);
  if (!moved) return std::nullopt;
  Move move;
  move.inputs = {keep(node.input(0)->producer->input(0)), ints(*moved)};
  move.outputs = {without_axes(permutation, *moved)};
  return move;
}

std::optional<Move> move_pad(const onnx::Node& node, const Permutation& permutation) {
  const auto pads = constant_ints(node.input(1));
  const std::size_t rank = permutation.size();
  if (!pads || pads->size() != 2 * rank || node.input(3) != nullptr) return std::nullopt;
  std::vector<std::int64_t> moved(2 * rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const auto to = static_cast<std::size_t>(permutation[i]);
    moved[to] = (*pads)[i];
    moved[rank + to] = (*pads)[rank + i];
  }
  Move move;
  move.inputs = {keep(node.input(0)->producer->input(0)), ints(moved)};
  if (node.input(2) != nullptr) move.inputs.push_back(keep(node.input(2)));
  move.outputs = {permutation};
  return move;
}

std::optional<Move> move_slice(const onnx::Node& node, const Permutation& permutation) {
  const auto axes = constant_ints(node.input(3));
  if (!axes) return std::nullopt;
  const auto moved = moved_axes(*axes, permutation);
  if (!moved) return std::nullopt;
  Move move;
  move.inputs = {keep(node.input(0)->producer->input(0)), keep(node.input(1)), keep(node.input(2)), ints(*moved)};
  if (node.input(4) != nullptr) move.inputs.push_back(keep(node.input(4)));
  move.outputs = {permutation};
  return move;
}

std::optional<Move> move_along_axis(const onnx::Node& node, const Permutation& permutation, std::int64_t default_axis) {
  Move move;
  move.axis = moved_axis(node.int_or("axis", default_axis), permutation);
  if (!move.axis) return std::nullopt;
  move.inputs.push_back(keep(node.input(0)->producer->input(0)));
  for (std::size_t i = 1; i < node.inputs.size(); ++i) move.inputs.push_back(keep(node.input(i)));
  move.outputs.assign(node.outputs.size(), permutation);
  return move;
}

/// Returns how to move a Reshape before the Transpose; nothing unless the Transpose keeps the order of all axes longer
/// than 1, so that it only changes the shape.
std::optional<Move> move_reshape(const onnx::Node& node, const Permutation& permutation) {
  const onnx::Value* x = node.input(0)->producer->input(0);
  const auto dims = constant_ints(node.input(1));
  if (!x->shape || !dims || std::find(dims->begin(), dims->end(), 0) != dims->end()) return std::nullopt;
  Permutation longer;
  for (const std::int64_t axis : permutation) {
    const Dim& dim = (*x->shape)[static_cast<std::size_t>(axis)];
    if (!(dim.is_constant() && dim.value() == 1)) longer.push_back(axis);
  }
  if (!std::is_sorted(longer.begin(), longer.end())) return std::nullopt;
  Move move;
  move.inputs = {keep(x), keep(node.input(1))};
  move.outputs = {{}};
  return move;
}

std::optional<Move> move_of(const onnx::Node& node) {
  if (!node.domain.empty() || node.inputs.empty() || node.outputs.empty()) return std::nullopt;
  std::optional<Permutation> permutation;
  for (const onnx::Value* input : node.inputs) {
    if (!permutation) permutation = transposition_of(input);
  }
  if (!permutation) return std::nullopt;
  // TensorRT accepts u8 after a Cast only as an output of the network, so no Transpose may follow such a Cast.
  if (node.output() != nullptr && node.output()->type == onnx::ElementType::u8) return std::nullopt;
  if (has_trait(node, onnx::trait::broadcasting)) return move_elementwise(node, *permutation);
  if (node.is("Concat")) return move_concat(node, *permutation);
  if (transposition_of(node.input(0)) != permutation) return std::nullopt;
  if (has_trait(node, onnx::trait::elementwise)) {
    Move move;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      move.inputs.push_back(keep(i == 0 ? node.input(0)->producer->input(0) : node.input(i)));
    }
    if (node.outputs.size() != 1) return std::nullopt;
    move.outputs = {*permutation};
    return move;
  }
  if (has_trait(node, onnx::trait::reduction)) return move_reduction(node, *permutation);
  if (node.is("Squeeze")) return move_squeeze(node, *permutation);
  if (node.is("Pad")) return move_pad(node, *permutation);
  if (node.is("Slice")) return move_slice(node, *permutation);
  if (node.is("Softmax") || node.is("LogSoftmax")) return move_along_axis(node, *permutation, -1);
  if (node.is("Split")) return move_along_axis(node, *permutation, 0);
  if (node.is("Reshape")) return move_reshape(node, *permutation);
  return std::nullopt;
}

/// Returns the shape of the input of a Transpose whose output has this shape. Returns `shape` unchanged if it is
/// unknown or `permutation` is empty.
std::optional<Shape> untransposed(const std::optional<Shape>& shape, const Permutation& permutation) {
  if (!shape || permutation.empty()) return shape;
  Shape result(shape->size(), Dim(0));
  for (std::size_t i = 0; i < shape->size(); ++i) result[static_cast<std::size_t>(permutation[i])] = (*shape)[i];
  return result;
}

void edit(onnx::Graph& graph, const std::string& output, const Move& move) {
  onnx::Node& old = *graph.find(output)->producer;
  std::vector<onnx::Value*> inputs;
  for (const ReplacedInput& input : move.inputs) {
    if (input.tensor) {
      inputs.push_back(graph.add_constant(output + "/moved", *input.tensor));
    } else {
      inputs.push_back(input.value.empty() ? nullptr : graph.find(input.value));
    }
  }
  std::vector<std::string> hints;
  for (const onnx::Value* value : old.outputs) hints.push_back(value == nullptr ? "" : value->name);
  onnx::Node* node = graph.add_node(old.op_type, inputs, hints, &old);
  node->name = old.name;
  for (const auto& [name, attribute] : old.attributes) node->attributes.emplace(name, copy_attribute(attribute));
  if (move.axis) node->attributes.insert_or_assign("axis", onnx::NodeAttribute(onnx::AttributeData(*move.axis)));
  if (move.axes) node->attributes.insert_or_assign("axes", onnx::NodeAttribute(onnx::AttributeData(*move.axes)));
  for (std::size_t i = 0; i < old.outputs.size(); ++i) {
    onnx::Value* value = old.outputs[i];
    if (value == nullptr) continue;
    const Permutation& permutation = move.outputs[i];
    onnx::Value* inner = node->outputs[i];
    inner->type = value->type;
    inner->shape = untransposed(value->shape, permutation);
    if (permutation.empty()) {
      graph.move_output(old, i, *node, i);
      continue;
    }
    onnx::Node* back = graph.add_node("Transpose", {inner}, {value->name}, &old);
    back->attributes.emplace("perm", onnx::NodeAttribute(onnx::AttributeData(permutation)));
    graph.move_output(old, i, *back, 0);
  }
}

/// Replaces two Transposes in a row, `outer` and the one that computes its input, by one Transpose, or by none if they
/// cancel each other. Does nothing if `outer` does not follow another Transpose.
void merge(Rewriter& rewriter, onnx::Node& outer) {
  const auto first = transposition_of(outer.input(0));
  const auto second = transposition_of(outer.output());
  if (!first || !second || outer.output()->is_unused()) return;
  onnx::Node& inner = *outer.input(0)->producer;
  Permutation both;
  for (const std::int64_t axis : *second) both.push_back((*first)[static_cast<std::size_t>(axis)]);
  const bool none_left = std::is_sorted(both.begin(), both.end());
  if (none_left && outer.output()->is_output()) return;  // remove_identities checks whether an output can be replaced
  const onnx::Value& x = *inner.input(0);
  rewriter.apply({.nodes = {&inner, &outer},
                  .inputs = {inner.input(0)},
                  .outputs = {outer.output()},
                  .replacement = none_left ? fmt::format("'{}'", x.name) : "one Transpose",
                  .reason = none_left ? "two Transposes that cancel each other" : "two Transposes in a row",
                  .by_definition = "",
                  .edit = [x = x.name, y = outer.output()->name, both, none_left](onnx::Graph& edited) {
                    onnx::Value* value = edited.find(y);
                    if (none_left) {
                      edited.replace_all_uses(*value, *edited.find(x));
                      return;
                    }
                    onnx::Node* old = value->producer;
                    onnx::Node* node = edited.add_node("Transpose", {edited.find(x)}, {y}, old);
                    node->name = old->name;
                    node->attributes.emplace("perm", onnx::NodeAttribute(onnx::AttributeData(both)));
                    edited.move_output(*old, 0, *node, 0);
                  }});
}

}  // namespace

void move_transposes(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    // In topological order, so that one Transpose moves below all nodes that allow it.
    for (onnx::Node* node : graph->nodes()) {
      if (!node->subgraphs().empty()) continue;
      if (node->is("Transpose")) merge(rewriter, *node);
      const auto move = move_of(*node);
      if (!move || move->outputs.size() != node->outputs.size()) continue;
      Proposal proposal{
          .nodes = {node},
          .outputs = node->used_outputs(),
          .replacement = fmt::format("{} before the Transpose", node->op_type),
          .reason = "it computes the same for every order of the elements; the Transpose moves on toward its inverse"};
      if (proposal.outputs.empty()) continue;
      for (onnx::Value* input : node->inputs) {
        if (input == nullptr || input->constant()) continue;
        const bool moves = std::any_of(move->inputs.begin(), move->inputs.end(), [&](const ReplacedInput& replacement) {
          return !replacement.tensor && input->producer != nullptr && input->producer->is("Transpose") &&
                 replacement.value == input->producer->input(0)->name;
        });
        onnx::Value* source = moves ? input->producer->input(0) : input;
        if (moves) proposal.nodes.push_back(input->producer);
        if (std::find(proposal.inputs.begin(), proposal.inputs.end(), source) == proposal.inputs.end()) {
          proposal.inputs.push_back(source);
        }
      }
      proposal.edit = [name = proposal.outputs.front()->name, move = *move](onnx::Graph& edited) {
        edit(edited, name, move);
      };
      rewriter.apply(proposal);
    }
  }
}

}  // namespace graft::passes
