// Pass remove_empty_checks: replaces an If that returns an empty tensor for an empty input, and otherwise selects from
// the input, by the branch that selects.
//
//   before                                            after
//   n = Size(boxes)                                   b = Concat(Reshape(boxes, [-1]), [-inf])
//   y = If<then = {none = [] (i64)},                  m = ReduceMax(b)
//          else = {m = ReduceMax(boxes)               ...
//                  ...                                y = NonMaxSuppression(...)
//                  s = NonMaxSuppression(...)}>(n == 0)
//
// PyTorch writes such an If for `if boxes.numel() == 0: return torch.empty(0)`; the other branch, in torchvision's
// detectors, suppresses boxes. TensorRT accepts operators whose output size depends on data only at the top level of a
// network, so the nodes of such a branch must move there. For no boxes they select none by themselves. Only the maximum
// of no elements is not defined in ONNX before operator set 20: -inf among the elements changes no other maximum.
//
// The pass rewrites only an If whose branch holds a node with such an output: TensorRT runs any other If. The proof
// also runs inputs that have no elements.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/branches.hpp"
#include "onnx/extract.hpp"
#include "onnx/opset.hpp"
#include "onnx/schema.hpp"
#include "passes/cleanup/inline_branch.hpp"
#include "passes/comparison.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

/// Returns whether a node returns the elements of its first input, perhaps in another shape.
bool keeps_elements(const onnx::Node& node) {
  return node.is("Identity") || node.is("Squeeze") || node.is("Unsqueeze") || node.is("Reshape") || node.is("Flatten");
}

/// Returns whether a reduction node reduces all axes of its input to a single number.
bool reduces_all(const onnx::Node& node) {
  std::optional<std::vector<std::int64_t>> axes = node.ints("axes");
  if (const onnx::Value* given = node.input(1)) {
    const auto constant = given->constant();
    axes = constant ? constant->ints() : std::nullopt;
    if (!axes) return false;
  }
  if (!axes || axes->empty()) return node.int_or("noop_with_empty_axes", 0) == 0;
  return node.input(0)->rank() == static_cast<std::int64_t>(axes->size());
}

std::optional<double> constant_number(const onnx::Value* value) {
  const auto constant = value == nullptr ? std::nullopt : value->constant();
  if (!constant || constant->element_count() != 1) return std::nullopt;
  const auto numbers = constant->numbers();
  return numbers ? std::optional(numbers->front()) : std::nullopt;
}

/// Returns whether a node is a Cast that converts a number of elements to 0 only if it is 0. Returns false for a Cast
/// to integers narrower than i32 or to unsigned integers, because a large number may wrap to 0 there.
bool keeps_zero_apart(const onnx::Node& cast) {
  using onnx::ElementType;
  if (!cast.is("Cast") || cast.output() == nullptr || !cast.output()->type) return false;
  const ElementType type = *cast.output()->type;
  return !onnx::is_integer(type) || type == ElementType::i64 || type == ElementType::i32;
}

bool has_one_element(const onnx::Value& value) {
  return value.shape && std::all_of(value.shape->begin(), value.shape->end(), [](const Dim& dim) { return dim == 1; });
}

/// Returns the tensor whose size `value` contains: its number of elements, or the product of one or more of its
/// dimensions. The tensor has no elements if `value` is 0. Returns null if `value` is not computed as such a size.
onnx::Value* counted_tensor(const onnx::Value* value) {
  bool is_one_number = false;
  while (value != nullptr && value->producer != nullptr) {
    const onnx::Node& node = *value->producer;
    if (node.is("Size")) return node.input(0);
    if (node.is("Shape")) return is_one_number || has_one_element(*value) ? node.input(0) : nullptr;
    if (node.is("ReduceProd")) {
      if (node.input(0) == nullptr || !reduces_all(node)) return nullptr;
      is_one_number = true;
    } else if (node.is("Gather") || node.is("Slice")) {
      is_one_number = is_one_number || has_one_element(*value);
      const onnx::Node* shape = node.input(0) == nullptr ? nullptr : node.input(0)->producer;
      if (shape == nullptr || !shape->is("Shape")) return nullptr;
    } else if (!keeps_elements(node) && !keeps_zero_apart(node)) {
      return nullptr;
    }
    value = node.input(0);
  }
  return nullptr;
}

/// A condition of an If that shows whether a tensor has no elements. It compares a size of the tensor with a constant,
/// and its result for size 0 differs from its result for all other sizes.
struct EmptyCheck {
  onnx::Value* tensor = nullptr;        ///< The tensor that has no elements if the count is 0.
  bool if_empty = false;                ///< The condition for a count of 0.
  std::vector<onnx::Node*> nodes = {};  ///< The nodes that compute the condition from the count.
};

/// Returns the EmptyCheck of a node that compares the size of a tensor with a constant, if the result for size 0
/// differs from the result for all other sizes; otherwise nothing. The caller must set `nodes` of the result, which is
/// empty.
std::optional<EmptyCheck> read_comparison(const onnx::Node& node) {
  for (const std::size_t counted : {0, 1}) {
    const auto number = constant_number(node.input(1 - counted));
    onnx::Value* tensor = number ? counted_tensor(node.input(counted)) : nullptr;
    if (tensor == nullptr) continue;
    const auto holds = [&](double count) {
      return counted == 0 ? compare(node, count, *number) : compare(node, *number, count);
    };
    const auto if_empty = holds(0);
    if (!if_empty) return std::nullopt;
    // All comparisons but Equal are monotonic in the count, and Equal holds for at most one of the three counts.
    const bool tells_0_apart = holds(1) != if_empty && holds(2) != if_empty &&
                               holds(static_cast<double>(std::numeric_limits<std::int64_t>::max())) != if_empty;
    if (tells_0_apart) return EmptyCheck{tensor, *if_empty};
  }
  return std::nullopt;
}

std::optional<EmptyCheck> read_condition(const onnx::Value* condition) {
  std::vector<onnx::Node*> nodes;
  bool is_negated = false;
  while (condition != nullptr && condition->producer != nullptr) {
    onnx::Node& node = *condition->producer;
    std::optional<EmptyCheck> check = read_comparison(node);
    // A Cast of a number to a condition is true unless the number is 0.
    const bool is_cast =
        node.is("Cast") && node.input(0) != nullptr && node.input(0)->type != onnx::ElementType::boolean;
    if (onnx::Value* tensor = is_cast ? counted_tensor(node.input(0)) : nullptr) check = EmptyCheck{tensor, false};
    nodes.push_back(&node);
    if (check) {
      check->if_empty = check->if_empty != is_negated;
      check->nodes = std::move(nodes);
      return check;
    }
    if (node.is("Not")) {
      is_negated = !is_negated;
    } else if (!keeps_elements(node) && !node.is("Cast")) {
      return std::nullopt;
    }
    condition = node.input(0);
  }
  return std::nullopt;
}

/// An If that can be replaced by one of its branches, because the other one returns tensors without elements.
struct RemovableIf {
  EmptyCheck check;
  std::string_view kept;           ///< The attribute with the branch that is kept.
  std::string_view other;          ///< The attribute with the branch without elements.
  std::string sized_by_data = {};  ///< An operator in the kept branch whose output size depends on data.
};

/// Returns whether all outputs of `branch` are constants without elements whose shapes are compatible with the known
/// dimensions of the outputs of `other`.
bool gives_no_elements(const onnx::Graph& branch, const onnx::Graph& other) {
  for (std::size_t i = 0; i < branch.outputs().size(); ++i) {
    const auto constant = branch.outputs()[i]->constant();
    if (!constant || constant->element_count() != 0) return false;
    const auto& shape = other.outputs()[i]->shape;
    if (!shape) continue;
    const bool fits = std::equal(shape->begin(), shape->end(), constant->dims.begin(), constant->dims.end(),
                                 [](const Dim& dim, std::int64_t size) { return !dim.is_constant() || dim == size; });
    if (!fits) return false;
  }
  return true;
}

std::optional<RemovableIf> read_if(const onnx::Node& node) {
  if (!node.is("If")) return std::nullopt;
  std::optional<EmptyCheck> check = read_condition(node.input(0));
  if (!check) return std::nullopt;
  RemovableIf found{.check = *std::move(check), .kept = "else_branch", .other = "then_branch"};
  if (!found.check.if_empty) std::swap(found.kept, found.other);
  const onnx::Graph* kept = onnx::subgraph(node, found.kept);
  const onnx::Graph* other = onnx::subgraph(node, found.other);
  if (kept == nullptr || other == nullptr || kept->outputs().size() != other->outputs().size() ||
      kept->outputs().size() < node.outputs.size() || !gives_no_elements(*other, *kept)) {
    return std::nullopt;
  }
  for (const onnx::Node* inner : kept->nodes()) {
    if (has_trait(*inner, onnx::trait::sized_by_data)) found.sized_by_data = inner->op_type;
    if (const auto nested = read_if(*inner)) found.sized_by_data = nested->sized_by_data;
  }
  return found.sized_by_data.empty() ? std::nullopt : std::optional(std::move(found));
}

/// Returns the identity element of the maximum (the lowest number of the type) or of the minimum (the highest), or
/// nothing for types other than f16, bf16, f32, f64 and i32.
std::optional<double> neutral_number(onnx::ElementType type, bool is_maximum) {
  using onnx::ElementType;
  switch (type) {
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::f32:
    case ElementType::f64:
      return is_maximum ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    case ElementType::i32:
      return is_maximum ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int32_t>::max();
    default: return std::nullopt;
  }
}

/// Changes each ReduceMax and ReduceMin that reduces all axes: appends the identity element of the maximum or minimum
/// to its operand, so that the node also has a result if the operand is empty.
void extend_reductions(onnx::Graph& branch) {
  for (onnx::Node* node : branch.nodes()) {
    const bool is_maximum = node->is("ReduceMax");
    onnx::Value* operand = node->input(0);
    if ((!is_maximum && !node->is("ReduceMin")) || operand == nullptr || !operand->type || operand->constant())
      continue;
    const auto number = neutral_number(*operand->type, is_maximum);
    if (!number || !reduces_all(*node) || node->int_or("keepdims", 1) != 0) continue;
    onnx::Value* all = branch.add_constant("all_elements", onnx::TensorData::from_ints({-1}));
    onnx::Value* neutral =
        branch.add_constant("neutral", onnx::TensorData::from_numbers(*operand->type, {1}, {*number}));
    const onnx::Node* flat = branch.add_node("Reshape", {operand, all}, {operand->name + "_flat"}, node);
    onnx::Node* extended = branch.add_node("Concat", {flat->output(), neutral}, {operand->name + "_extended"}, node);
    extended->attributes.emplace("axis", onnx::NodeAttribute(onnx::AttributeData(std::int64_t{0})));
    extended->output()->type = operand->type;
    branch.set_input(*node, 0, extended->output());
    while (node->inputs.size() > 1) branch.remove_last_input(*node);
    node->attributes.erase("axes");
  }
}

Proposal propose(onnx::Node& node, const RemovableIf& found) {
  Proposal proposal;
  proposal.nodes.assign(found.check.nodes.rbegin(), found.check.nodes.rend());
  proposal.nodes.push_back(&node);
  proposal.inputs.push_back(found.check.tensor);
  for (const onnx::Value* value : onnx::values_read_by(node)) {
    if (value != node.input(0)) proposal.inputs.push_back(node.graph->find_local(value->name));
  }
  proposal.outputs = node.used_outputs();
  proposal.emptied = {found.check.tensor};
  proposal.replacement = fmt::format("the nodes of its {}", found.kept);
  proposal.reason = fmt::format(
      "TensorRT supports {}, whose output size depends on data, only in the main graph; its {} returns no elements if "
      "'{}' has no elements, and its {} then returns no elements either",
      found.sized_by_data, found.other, found.check.tensor->name, found.kept);
  if (!proposal.outputs.empty()) {
    proposal.edit = [output = proposal.outputs.front()->name, kept = std::string(found.kept)](onnx::Graph& graph) {
      onnx::Node& copy = *graph.find_local(output)->producer;
      onnx::Graph& branch = *onnx::subgraph(copy, kept);
      extend_reductions(branch);
      inline_branch(copy, branch);
    };
  }
  return proposal;
}

}  // namespace

void remove_empty_checks(Rewriter& rewriter) {
  onnx::Graph& graph = rewriter.model().graph();
  if (graph.opset() < onnx::working_opset) return;
  // Only the main graph: in a body, the nodes of the branch would still be inside a body.
  for (onnx::Node* node : graph.nodes()) {
    const auto found = read_if(*node);
    if (!found) continue;
    const Proposal proposal = propose(*node, *found);
    if (!proposal.outputs.empty()) rewriter.apply(proposal);
  }
}

}  // namespace graft::passes
