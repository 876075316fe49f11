// If that TensorRT does not build, or after which it does not build a cubic Resize: both branches, and a Where.
//
//   y = If<then = {a = Neg(x)}, else = {b = Relu(x)}>(c)   becomes   y = Where(c, Neg(x), Relu(x))
//
// The branches must compute tensors of the same shape, and nothing that may fail in the branch that does not run: that
// branch may be there to avoid it. Measured in TensorRT-RTX 1.7.1: an If in a branch of another If fails with dynamic
// sizes, as does a cubic Resize with dynamic height or width anywhere after an If.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "onnx/branches.hpp"
#include "onnx/schema.hpp"
#include "onnx/standard_operators.hpp"
#include "passes/cleanup/inline_branch.hpp"
#include "passes/lowering/cost.hpp"
#include "passes/lowering/lowering.hpp"
#include "passes/lowering/surroundings.hpp"

namespace graft::passes {
namespace {

using onnx::Graph;
using onnx::Node;
using onnx::Value;

/// The number of operations up to which both branches of an If are always computed. A larger If is replaced only if the
/// network outside the If has at least as many operations.
constexpr std::int64_t free_operations = 100'000'000;

/// Returns whether a node reads or writes at positions that are computed in its own graph. In a branch that would not
/// have run, such positions may be outside the tensor.
bool reads_computed_positions(const Node& node) {
  const bool reads_positions =
      onnx::is_any_of(node, {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "OneHot"});
  const Value* positions = reads_positions ? node.input(1) : nullptr;
  return positions != nullptr && positions->producer != nullptr && positions->graph == node.graph &&
         !positions->constant();
}

/// Returns whether a node divides integers, or values of unknown type, by a divisor that is not constant and may be 0.
bool divides_integers(const Node& node) {
  const Value* divisor = onnx::is_any_of(node, {"Div", "Mod"}) ? node.input(1) : nullptr;
  return divisor != nullptr && (!divisor->type || onnx::is_integer(*divisor->type)) && !divisor->constant();
}

/// Returns why the nodes of a branch must not run when the condition selects the other branch, or an empty string if
/// they may.
std::string obstacle_in(const Graph& branch) {
  std::string why;
  branch.for_each_node([&](const Node& node) {
    if (!why.empty()) return;
    const std::string name = onnx::describe(node);
    if (has_trait(node, onnx::trait::random)) why = fmt::format("{} in its branches is random", name);
    if (!node.subgraphs().empty()) why = fmt::format("{} in its branches has a body", name);
    if (reads_computed_positions(node))
      why = fmt::format("{} in its branches reads computed positions, which may not exist", name);
    if (divides_integers(node)) why = fmt::format("{} in its branches may divide by 0", name);
    if (!node.domain.empty() && !onnx::is_of_onnxruntime(node) && node.domain != onnx_domain)
      why = fmt::format("{} in its branches is not an operator of ONNX or Graft", name);
  });
  return why;
}

/// Returns why the results of two branches cannot be inputs of one Where (different or unknown types or shapes), or an
/// empty string if they can.
std::string difference_of(Site& site, const Value& first, const Value& second) {
  if (!first.type || !second.type || first.type != second.type || *first.type == onnx::ElementType::string)
    return fmt::format("'{}' and '{}' of its branches are no tensors of one type", first.name, second.name);
  const Shape* a = site.shapes().of(first);
  const Shape* b = site.shapes().of(second);
  const bool are_equal =
      a != nullptr && b != nullptr && a->size() == b->size() &&
      std::equal(a->begin(), a->end(), b->begin(), [](const Dim& x, const Dim& y) { return x == y; });
  return are_equal
             ? ""
             : fmt::format("'{}' and '{}' of its branches are not known to have one shape", first.name, second.name);
}

/// Returns the number of operations of the whole model without this If and its branches.
std::int64_t operations_around(const Node& node) {
  std::int64_t operations = 0;
  std::vector<const Graph*> waiting = {&node.graph->root()};
  while (!waiting.empty()) {
    const Graph& graph = *waiting.back();
    waiting.pop_back();
    operations += cost_of(graph).operations;
    for (const Node* each : graph.nodes()) {
      if (each == &node) continue;
      for (const Graph* body : each->subgraphs()) waiting.push_back(body);
    }
  }
  return operations;
}

/// Replaces an If by the nodes of both branches and, for each output, a Where that selects one of the two results.
void compute_both(Node& node) {
  Graph& graph = *node.graph;
  NodeNames names(graph);
  BodyCopies then_copies(node, *onnx::subgraph(node, "then_branch"), BodyCopies::Shapes::same, names);
  const std::vector<Value*> then_results = then_copies.add({});
  BodyCopies else_copies(node, *onnx::subgraph(node, "else_branch"), BodyCopies::Shapes::same, names);
  const std::vector<Value*> else_results = else_copies.add({});
  Value* condition = node.input(0);
  if (!condition->shape || !condition->shape->empty()) {  // ONNX Runtime also accepts one element in a row
    Value* no_axes = graph.add_constant("no_axes", onnx::TensorData::from_ints({}));
    Value* scalar = graph.add_node("Reshape", {condition, no_axes}, {condition->name + "/scalar"})->output();
    scalar->type = condition->type;
    scalar->shape = Shape{};
    condition = scalar;
  }
  std::vector<Value*> results;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    Value* chosen = nullptr;
    if (node.outputs[i] != nullptr) {
      Node* where =
          graph.add_node("Where", {condition, then_results[i], else_results[i]}, {node.outputs[i]->name + "/chosen"});
      if (!node.name.empty()) where->name = i == 0 ? node.name : fmt::format("{}/{}", node.name, i);
      chosen = where->output();
      chosen->type = then_results[i]->type;
      chosen->shape = then_results[i]->shape;
    }
    results.push_back(chosen);
  }
  then_copies.finish(results);
  else_copies.rename_values();
  graph.topological_sort();
}

}  // namespace

std::optional<Replacement> lower_if(Site& site) {
  const Node& node = site.node();
  const Graph* then_branch = onnx::subgraph(node, "then_branch");
  const Graph* else_branch = onnx::subgraph(node, "else_branch");
  const std::size_t outputs = node.outputs.size();
  if (then_branch == nullptr || else_branch == nullptr || node.input(0) == nullptr || outputs == 0 ||
      then_branch->outputs().size() != outputs || else_branch->outputs().size() != outputs) {
    return std::nullopt;
  }
  if (find_condition(node) == Condition::undecided) {
    return site.no("its condition depends on sizes, and one of its branches may not be valid for some of them");
  }
  for (const Graph* branch : {then_branch, else_branch}) {
    if (std::string why = obstacle_in(*branch); !why.empty()) return site.no(std::move(why));
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    std::string why = difference_of(site, *then_branch->outputs()[i], *else_branch->outputs()[i]);
    if (!why.empty()) return site.no(std::move(why));
  }
  const Cost then_cost = cost_of(*then_branch);
  const Cost else_cost = cost_of(*else_branch);
  const std::int64_t more = std::max(then_cost.operations, else_cost.operations);
  if (more > free_operations && more > operations_around(node)) {
    return site.no(
        fmt::format("a branch has {:.3g} operations, more than the rest of the network", static_cast<double>(more)));
  }
  Replacement result;
  const Cost both{.layers = then_cost.layers + else_cost.layers,
                  .written = then_cost.written + else_cost.written,
                  .operations = then_cost.operations + else_cost.operations,
                  .is_known = then_cost.is_known && else_cost.is_known};
  result.summary = fmt::format("both branches, which cost {} each time, and Where", to_string(both));
  for (const Node* resize : find_resizes_after(node)) result.fixes.push_back(resize);
  result.reason =
      fmt::format("TensorRT refuses {}", result.fixes.empty() ? "an If with dynamic sizes in a branch of another If"
                                                              : "a cubic Resize with dynamic sizes after an If");
  result.by_definition = "by definition: Where selects the results of the branch that If runs";
  result.edit = compute_both;
  return result;
}

}  // namespace graft::passes
