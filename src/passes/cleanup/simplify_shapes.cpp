// Pass simplify_shapes: replaces shapes that a network computes although they are known by constants, and merges
// reshapes in a row.
//
//   Reshape(x, Concat(Gather(Shape(x), 0), [-1]))   becomes   Reshape(x, [-1, 768])      where x is [N, 3, 16, 16]
//   Squeeze(Reshape(Flatten(x), s), 1)              becomes   Reshape(x, t)
//   Expand(x, computed), Tile(x, computed)          becomes   Expand(x, t), Tile(x, t)   with a constant t
//
// Exporters write x.view(x.size(0), -1) as Shape, Gather, Concat and Reshape, TensorFlow as Shape, StridedSlice, Pack
// and Reshape. If the shapes before and after follow from the inputs of the network, a constant with 0 ("as it was")
// and -1 ("what is left") expresses the same, also for a dynamic size. Both together fail for a tensor without
// elements, so they only replace a Reshape that fails for it too.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onnx/schema.hpp"
#include "passes/cleanup/proven_shapes.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

using Numbers = std::vector<std::int64_t>;

bool only_reshapes(const onnx::Value* value) {
  if (value == nullptr || value->producer == nullptr || value->producer->graph != value->graph) return false;
  const onnx::Node& node = *value->producer;
  return has_trait(node, onnx::trait::view) && !node.is("Identity");  // remove_identities removes these
}

bool is_computed(const onnx::Value* value) { return value != nullptr && !value->constant(); }

/// Returns the target shape (with zeros for copied sizes and at most one -1) with which a single Reshape changes a
/// tensor of shape `before` to shape `after`, or nothing if no constant target does this.
std::optional<Numbers> target_of(const Shape& before, const Shape& after) {
  const auto is_open = [](const Dim& dim) { return !dim.is_constant(); };
  // In the constant, 0 means a copy, so that no axis can be made empty.
  if (std::any_of(after.begin(), after.end(), [](const Dim& dim) { return dim.is_constant() && dim.value() == 0; })) {
    return std::nullopt;
  }
  // Dynamic sizes of the input that only the reshape itself restricts: they cannot be inferred or tried out.
  const auto is_lost = [&](const Dim& dim) {
    return is_open(dim) && std::find(after.begin(), after.end(), dim) == after.end();
  };
  const auto is_new = [&](const Dim& dim) {
    return is_open(dim) && std::find(before.begin(), before.end(), dim) == before.end();
  };
  if (std::any_of(before.begin(), before.end(), is_lost) && std::none_of(after.begin(), after.end(), is_new)) {
    return std::nullopt;
  }
  const bool one_is_open = std::count_if(after.begin(), after.end(), is_open) == 1;
  bool is_left = false;
  Numbers target;
  for (std::size_t axis = 0; axis < after.size(); ++axis) {
    const Dim& dim = after[axis];
    if (dim.is_constant()) {
      target.push_back(dim.value());
    } else if (!one_is_open && axis < before.size() && before[axis] == dim) {
      target.push_back(0);
    } else if (!std::exchange(is_left, true)) {
      target.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  return target;
}

/// Returns the output axis whose size a Reshape infers (-1 in its target), or nothing if it infers no size or the axis
/// is unknown.
std::optional<std::size_t> inferred_axis(const onnx::Node& reshape, const ProvenShapes& shapes) {
  const onnx::Value* target = reshape.input(1);
  const bool is_joined = target->producer != nullptr && target->producer->is("Concat");
  const std::vector<onnx::Value*> parts =
      is_joined ? target->producer->inputs : std::vector<onnx::Value*>{reshape.input(1)};
  std::size_t axis = 0;
  for (const onnx::Value* part : parts) {
    if (const auto sizes = constant_ints(part)) {
      const auto found = std::find(sizes->begin(), sizes->end(), -1);
      if (found != sizes->end()) return axis + static_cast<std::size_t>(found - sizes->begin());
      axis += sizes->size();
      continue;
    }
    const Shape* length = shapes.of(*part);
    if (length == nullptr || length->size() != 1 || !length->front().is_constant()) return std::nullopt;
    axis += static_cast<std::size_t>(length->front().value());
  }
  return std::nullopt;
}

/// Returns whether a Reshape in `row`, a chain of nodes, fails if `dim` is 0, because it infers one size (-1) while
/// `dim` is another size of its output.
bool needs_elements(const std::vector<onnx::Node*>& row, const Dim& dim, const ProvenShapes& shapes) {
  return std::any_of(row.begin(), row.end(), [&](const onnx::Node* node) {
    const auto inferred = node->is("Reshape") ? inferred_axis(*node, shapes) : std::nullopt;
    const Shape* shape = inferred ? shapes.of(*node->output()) : nullptr;
    for (std::size_t axis = 0; shape != nullptr && axis < shape->size(); ++axis) {
      if (axis != *inferred && (*shape)[axis] == dim) return true;
    }
    return false;
  });
}

/// Returns whether a single Reshape to `target` accepts every size, 0 included, that the chain of nodes `row` accepts.
/// `after` is the shape of its output. A Reshape that copies a size of 0 cannot infer another size (-1).
bool allows_empty(const Numbers& target, const Shape& after, const std::vector<onnx::Node*>& row,
                  const ProvenShapes& shapes) {
  if (std::find(target.begin(), target.end(), -1) == target.end()) return true;
  for (std::size_t axis = 0; axis < target.size(); ++axis) {
    if (target[axis] == 0 && !needs_elements(row, after[axis], shapes)) return false;
  }
  return true;
}

/// Returns the second input of the Expand from `before` to `after`, with 1 for each axis that keeps its size, or
/// nothing if a size that changes is dynamic.
std::optional<Numbers> expansion_of(const Shape& before, const Shape& after) {
  if (after.size() < before.size()) return std::nullopt;
  const std::size_t added = after.size() - before.size();
  Numbers target;
  for (std::size_t axis = 0; axis < after.size(); ++axis) {
    if (axis >= added && before[axis - added] == after[axis]) {
      target.push_back(1);
    } else if (after[axis].is_constant()) {
      target.push_back(after[axis].value());
    } else {
      return std::nullopt;
    }
  }
  return target;
}

std::optional<Numbers> repetitions_of(const Shape& before, const Shape& after) {
  if (after.size() != before.size()) return std::nullopt;
  Numbers repetitions;
  for (std::size_t axis = 0; axis < after.size(); ++axis) {
    const Dim& from = before[axis];
    const Dim& to = after[axis];
    if (from == to) {
      repetitions.push_back(1);
    } else if (from.is_constant() && to.is_constant() && from.value() > 0 && to.value() % from.value() == 0) {
      repetitions.push_back(to.value() / from.value());
    } else {
      return std::nullopt;
    }
  }
  return repetitions;
}

/// Proposes to replace `nodes`, which compute y from x, by one node of type `op_type` with the inputs x and the
/// constant `numbers`.
void propose(Rewriter& rewriter, std::vector<onnx::Node*> nodes, onnx::Value& x, onnx::Value& y,
             const std::string& op_type, const Numbers& numbers) {
  const std::string reason = nodes.size() > 1
                                 ? fmt::format("{} nodes in a row that change only the shape", nodes.size())
                                 : "the shape that it computes is known";
  rewriter.apply({.nodes = std::move(nodes),
                  .inputs = {&x},
                  .outputs = {&y},
                  .replacement = fmt::format("{} [{}]", op_type, fmt::join(numbers, ", ")),
                  .reason = reason,
                  .by_definition = "",
                  .edit = [x = x.name, y = y.name, op_type, numbers](onnx::Graph& edited) {
                    onnx::Value* value = edited.find(y);
                    onnx::Node* old = value->producer;
                    onnx::Value* constant = edited.add_constant(y + "/shape", onnx::TensorData::from_ints(numbers));
                    onnx::Node* node = edited.add_node(op_type, {edited.find(x), constant}, {y}, old);
                    node->name = old->name;
                    edited.move_output(*old, value->output_index, *node, 0);
                  }});
}

void simplify_reshape(Rewriter& rewriter, onnx::Node& node, const ProvenShapes& shapes) {
  onnx::Value& y = *node.output();
  const Shape* after = shapes.of(y);
  if (after == nullptr) return;
  // The farthest tensor is tried first, so that as many nodes as possible become one.
  std::vector<onnx::Node*> row;
  for (onnx::Value* value = &y; only_reshapes(value); value = value->producer->input(0)) row.push_back(value->producer);
  const bool computes = node.is("Reshape") && is_computed(node.input(1));
  for (; row.size() > 1 || (row.size() == 1 && computes); row.pop_back()) {
    onnx::Value& x = *row.back()->input(0);
    const Shape* before = shapes.of(x);
    if (x.constant() || before == nullptr) continue;
    const auto target = target_of(*before, *after);
    if (!target || !allows_empty(*target, *after, row, shapes)) continue;
    std::reverse(row.begin(), row.end());
    propose(rewriter, std::move(row), x, y, "Reshape", *target);
    return;
  }
}

void simplify_repetition(Rewriter& rewriter, onnx::Node& node, const ProvenShapes& shapes) {
  onnx::Value& x = *node.input(0);
  onnx::Value& y = *node.output();
  const Shape* before = shapes.of(x);
  const Shape* after = shapes.of(y);
  if (before == nullptr || after == nullptr || x.constant()) return;
  const auto numbers = node.is("Expand") ? expansion_of(*before, *after) : repetitions_of(*before, *after);
  if (numbers) propose(rewriter, {&node}, x, y, node.op_type, *numbers);
}

void simplify(Rewriter& rewriter, onnx::Graph& graph, const ProvenShapes& shapes, bool ends_of_rows) {
  for (onnx::Node* node : graph.nodes()) {
    onnx::Value* y = node->output();
    if (y == nullptr || y->is_unused() || node->input(0) == nullptr || node->input(0)->constant()) continue;
    const bool repeats = node->is("Expand") || node->is("Tile");
    if (repeats && ends_of_rows && is_computed(node->input(1))) simplify_repetition(rewriter, *node, shapes);
    if (!only_reshapes(y)) continue;
    const bool goes_on = !y->is_output() && std::all_of(y->uses.begin(), y->uses.end(), [](const onnx::Use& use) {
      return use.index == 0 && only_reshapes(use.node->output());
    });
    if (goes_on != ends_of_rows) simplify_reshape(rewriter, *node, shapes);
  }
}

}  // namespace

void simplify_shapes(Rewriter& rewriter) {
  const ProvenShapes shapes(rewriter);
  // The ends of rows first: nodes that these no longer need are not worth a rewrite of their own.
  for (onnx::Graph* graph : rewriter.graphs()) simplify(rewriter, *graph, shapes, true);
  rewriter.end();
  for (onnx::Graph* graph : rewriter.graphs()) simplify(rewriter, *graph, shapes, false);
}

}  // namespace graft::passes
