// Pass simplify_shapes: shapes that a network computes although they are known, and reshapes of reshapes.
//
// Exporters write x.view(x.size(0), -1) as Shape, Gather, Concat and Reshape, TensorFlow as Shape, StridedSlice, Pack
// and Reshape. Where the shapes before and after follow from the inputs of the network, a constant with 0 ("as it was")
// and -1 ("what is left") says the same, also for a size that is not known yet. Several Reshape, Flatten, Squeeze and
// Unsqueeze in a row become one Reshape. The same for the shape of Expand and the repetitions of Tile.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onnx/schema.hpp"
#include "passes/passes.hpp"
#include "passes/proven_shapes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

using Numbers = std::vector<std::int64_t>;

bool only_reshapes(const onnx::Value* value) {
  if (value == nullptr || value->producer == nullptr || value->producer->graph != value->graph) return false;
  const onnx::Node& node = *value->producer;
  return has_trait(node, onnx::trait::view) && !node.is("Identity");  // remove_identities takes those
}

bool is_computed(const onnx::Value* value) { return value != nullptr && !value->constant(); }

/// The constant that Reshape needs to make `after` of `before`; nothing where 0 and one -1 do not say it.
std::optional<Numbers> target_of(const Shape& before, const Shape& after) {
  const auto is_open = [](const Dim& dim) { return !dim.is_constant(); };
  // 0 stands for a copy, so that no axis can be said to be empty.
  if (std::any_of(after.begin(), after.end(), [](const Dim& dim) { return dim.is_constant() && dim.value() == 0; })) {
    return std::nullopt;
  }
  // Sizes that the reshape itself demands of the input: they cannot be known, nor tried out.
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

/// What Expand is asked for: 1 where the axis stays as it is.
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

/// One node of this type, with a constant for its shape, in the place of what makes y.
void propose(Rewriter& rewriter, std::vector<onnx::Node*> nodes, onnx::Value& x, onnx::Value& y,
             const std::string& op_type, const Numbers& numbers) {
  const std::string reason = nodes.size() > 1
                                 ? fmt::format("{} nodes in a row that change the shape alone", nodes.size())
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
  // From the farthest tensor on, so that as many as possible become one.
  std::vector<onnx::Node*> row;
  for (onnx::Value* value = &y; only_reshapes(value); value = value->producer->input(0)) row.push_back(value->producer);
  const bool computes = node.is("Reshape") && is_computed(node.input(1));
  for (; row.size() > 1 || (row.size() == 1 && computes); row.pop_back()) {
    onnx::Value& x = *row.back()->input(0);
    const Shape* before = shapes.of(x);
    if (x.constant() || before == nullptr) continue;
    const auto target = target_of(*before, *after);
    if (!target) continue;
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
  // The ends of rows first: what they no longer need is not worth a rewrite of its own.
  for (onnx::Graph* graph : rewriter.graphs()) simplify(rewriter, *graph, shapes, true);
  rewriter.end();
  for (onnx::Graph* graph : rewriter.graphs()) simplify(rewriter, *graph, shapes, false);
}

}  // namespace graft::passes
