// Pass remove_identities: removes nodes whose result is their input, bit for bit.
//
//   Identity(x), Mul(x, 1), Reshape(x, the shape of x)             becomes   x
//   Transpose<perm=[0, 2, 3, 1]>(Transpose<perm=[0, 3, 1, 2]>(x))   becomes   x
//
// Additions of +0 stay: they turn -0 into +0. Adding -0, subtracting +0, multiplying and dividing by 1 change nothing,
// NaN and infinities included.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

constexpr std::string_view by_onnx = "by definition of the operator in ONNX";

struct Sameness {
  onnx::Value* x = nullptr;  ///< The value that the node's first output equals.
  std::string reason;
  std::string_view by_definition;
  onnx::Node* partner = nullptr;  ///< A second node to remove, if nothing else needs it.
};

bool all_are(const onnx::TensorData& constant, double number) {
  constexpr std::int64_t most = 1 << 16;
  if (constant.element_count() > most || constant.element_count() == 0) return false;
  const auto values = constant.numbers();
  return values && std::all_of(values->begin(), values->end(), [&](double value) {
           return value == number && std::signbit(value) == std::signbit(number);
         });
}

bool is_constant(const onnx::Value* value, double number) {
  if (value == nullptr) return false;
  const auto constant = value->constant();
  return constant && all_are(*constant, number);
}

/// Returns whether a Dropout is in inference mode: its input training_mode is absent or the constant false.
bool drops_nothing(const onnx::Node& node) {
  if (node.input(2) == nullptr) return true;
  const auto training = node.input(2)->constant();
  return training && training->scalar() == 0.0;
}

std::optional<std::vector<std::int64_t>> permutation_of(const onnx::Node& node) {
  if (auto given = node.ints("perm")) return given;
  const auto rank = node.input(0) == nullptr ? std::nullopt : node.input(0)->rank();
  if (!rank) return std::nullopt;
  std::vector<std::int64_t> reversed(static_cast<std::size_t>(*rank));
  for (std::size_t i = 0; i < reversed.size(); ++i) reversed[i] = *rank - 1 - static_cast<std::int64_t>(i);
  return reversed;
}

bool leaves_order(const std::vector<std::int64_t>& permutation) {
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

std::optional<Sameness> sameness_of_transpose(const onnx::Node& node) {
  const auto outer = permutation_of(node);
  if (!outer) return std::nullopt;
  if (leaves_order(*outer))
    return Sameness{node.input(0), "the permutation leaves every axis where it is", {}, nullptr};
  onnx::Node* inner = node.input(0)->producer;
  if (inner == nullptr || !inner->is("Transpose") || inner->graph != node.graph || inner->input(0) == nullptr) {
    return std::nullopt;
  }
  const auto first = permutation_of(*inner);
  if (!first || first->size() != outer->size()) return std::nullopt;
  std::vector<std::int64_t> both;
  for (const std::int64_t axis : *outer) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(first->size())) return std::nullopt;
    both.push_back((*first)[static_cast<std::size_t>(axis)]);
  }
  if (!leaves_order(both)) return std::nullopt;
  return Sameness{inner->input(0), "two Transposes that cancel each other", {}, inner};
}

std::optional<Sameness> sameness_of(const onnx::Node& node) {
  onnx::Value* x = node.input(0);
  const onnx::Value* y = node.output();
  if (x == nullptr || y == nullptr || !node.domain.empty()) return std::nullopt;
  if (node.is("Identity")) return Sameness{x, "Identity copies", by_onnx, nullptr};
  if (node.is("Dropout") && drops_nothing(node))
    return Sameness{x, "Dropout copies its input in inference", by_onnx, nullptr};
  const bool of_one = node.is("Concat") || node.is("Sum") || node.is("Max") || node.is("Min") || node.is("Mean");
  if (of_one && node.inputs.size() == 1)
    return Sameness{x, fmt::format("{} of one tensor", node.op_type), by_onnx, nullptr};
  if (node.is("Cast") && x->type && static_cast<std::int64_t>(*x->type) == node.int_or("to", 0)) {
    return Sameness{x, "a Cast to the type that the tensor already has", by_onnx, nullptr};
  }
  if (node.is("Transpose")) return sameness_of_transpose(node);

  if (!same_shape(*x, *y) && !(node.input(1) != nullptr && same_shape(*node.input(1), *y))) return std::nullopt;
  if (node.is("Reshape") || node.is("Flatten") || node.is("Expand")) {
    if (!same_shape(*x, *y)) return std::nullopt;
    return Sameness{x, fmt::format("{} to the shape that the tensor already has", node.op_type), {}, nullptr};
  }
  onnx::Value* z = node.input(1);
  if (z == nullptr || node.inputs.size() != 2 || !x->type || to_dtype(*x->type) == std::nullopt) return std::nullopt;
  const bool real = is_floating_point(*x->type);
  const auto same_as = [&](onnx::Value* kept, const char* reason) -> std::optional<Sameness> {
    if (!same_shape(*kept, *y)) return std::nullopt;
    return Sameness{kept, reason, {}, nullptr};
  };
  if (node.is("Mul") && is_constant(z, 1)) return same_as(x, "a multiplication by 1");
  if (node.is("Mul") && is_constant(x, 1)) return same_as(z, "a multiplication by 1");
  if (node.is("Div") && is_constant(z, 1)) return same_as(x, "a division by 1");
  if (node.is("Add") && is_constant(z, real ? -0.0 : 0.0))
    return same_as(x, real ? "an addition of -0" : "an addition of 0");
  if (node.is("Add") && is_constant(x, real ? -0.0 : 0.0))
    return same_as(z, real ? "an addition of -0" : "an addition of 0");
  if (node.is("Sub") && is_constant(z, 0)) return same_as(x, "a subtraction of 0");
  return std::nullopt;
}

/// Returns whether the nodes that read y, the output of `node`, can read x instead, so that `node` can be removed.
/// Returns false if another output of `node` is used, or if y is an output of the graph and x is an input or output of
/// the graph.
bool can_take_place(const onnx::Value& x, const onnx::Value& y, const onnx::Node& node) {
  for (std::size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.is_output_used(i)) return false;
  }
  if (!y.is_output()) return true;
  return x.graph == y.graph && x.producer != nullptr && !x.is_output();
}

}  // namespace

void remove_identities(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (onnx::Node* node : graph->nodes()) {
      const auto same = sameness_of(*node);
      if (!same || same->x->constant() || node->output()->is_unused() ||
          !can_take_place(*same->x, *node->output(), *node)) {
        continue;
      }
      Proposal proposal{.nodes = {node},
                        .inputs = {same->x},
                        .outputs = {node->output()},
                        .replacement = fmt::format("'{}'", same->x->name),
                        .reason = same->reason,
                        .by_definition = std::string(same->by_definition),
                        .edit = [x = same->x->name, y = node->output()->name](onnx::Graph& edited) {
                          edited.replace_all_uses(*edited.find(y), *edited.find(x));
                        }};
      if (same->partner != nullptr) proposal.nodes.push_back(same->partner);
      rewriter.apply(proposal);
    }
  }
}

}  // namespace graft::passes
