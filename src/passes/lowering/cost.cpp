// Counts layers, operations and written elements from shapes. Every operation counts the same.
#include "passes/lowering/cost.hpp"

#include <fmt/format.h>

#include <optional>

#include "onnx/schema.hpp"

namespace graft::passes {
namespace {

std::optional<std::int64_t> elements_of(const onnx::Value* value) {
  if (value == nullptr || !value->shape) return std::nullopt;
  std::int64_t count = 1;
  for (const Dim& dim : *value->shape) {
    const auto size = dim.evaluate([](const std::string&) { return std::optional<std::int64_t>(1); });
    if (!size || __builtin_mul_overflow(count, *size, &count)) return std::nullopt;
  }
  return count;
}

/// Returns the product of the sizes of a tensor from axis `first` on, or nothing if a size is dynamic or the product
/// overflows.
std::optional<std::int64_t> elements_from(const onnx::Value* value, std::size_t first) {
  if (value == nullptr || !value->shape) return std::nullopt;
  std::int64_t count = 1;
  for (std::size_t axis = first; axis < value->shape->size(); ++axis) {
    const Dim& dim = (*value->shape)[axis];
    if (!dim.is_constant() || __builtin_mul_overflow(count, dim.value(), &count)) return std::nullopt;
  }
  return count;
}

std::optional<std::int64_t> twice(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  std::int64_t result = 0;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &result) || __builtin_mul_overflow(result, 2, &result)) {
    return std::nullopt;
  }
  return result;
}

std::optional<std::int64_t> operations_of(const onnx::Node& node, std::optional<std::int64_t> written) {
  const onnx::Value* a = node.input(0);
  if (node.is("MatMul") && a != nullptr && a->shape && !a->shape->empty()) {
    return twice(written, elements_from(a, a->shape->size() - 1));
  }
  if (node.is("Conv")) return twice(written, elements_from(node.input(1), 1));
  if (node.is("ConvTranspose")) return twice(elements_of(a), elements_from(node.input(1), 1));
  if (node.is("GridSample")) return twice(written, 4);  // each element is a weighted sum of four neighbors
  if (has_trait(node, onnx::trait::moves_data | onnx::trait::reads_shape)) return 0;
  if (has_trait(node, onnx::trait::reduction) || onnx::is_any_of(node, {"ArgMax", "ArgMin", "TopK"})) {
    return elements_of(a);
  }
  return written;
}

}  // namespace

Cost cost_of(const onnx::Graph& graph) {
  Cost cost;
  for (const onnx::Node* node : graph.nodes()) {
    if (node->is("Constant")) continue;
    ++cost.layers;
    std::optional<std::int64_t> written = 0;
    for (const onnx::Value* output : node->outputs) {
      if (output == nullptr) continue;
      const auto elements = elements_of(output);
      if (!elements || !written || __builtin_add_overflow(*written, *elements, &*written)) written = std::nullopt;
    }
    const auto operations = operations_of(*node, written);
    const bool is_view = has_trait(*node, onnx::trait::view);
    cost.is_known = cost.is_known && written && operations &&
                    !__builtin_add_overflow(cost.written, is_view ? 0 : *written, &cost.written) &&
                    !__builtin_add_overflow(cost.operations, *operations, &cost.operations);
  }
  return cost;
}

std::string to_string(const Cost& cost) {
  const std::string layers = fmt::format("{} layer{}", cost.layers, cost.layers == 1 ? "" : "s");
  if (!cost.is_known) return layers + ", operations unknown because a size is unknown";
  return fmt::format("{}, {:.3g} operations, {:.3g} elements written", layers, static_cast<double>(cost.operations),
                     static_cast<double>(cost.written));
}

}  // namespace graft::passes
