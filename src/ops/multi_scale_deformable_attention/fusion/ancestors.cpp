// Follows the chain of nodes before a tensor that only move, scale and shift elements.
#include "ops/multi_scale_deformable_attention/fusion/ancestors.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace graft::passes::deformable_attention {

bool moves_elements(const onnx::Node& node) {
  constexpr std::array<std::string_view, 9> movements{"Flatten", "Gather",  "Identity",  "Reshape",  "Slice",
                                                      "Split",   "Squeeze", "Transpose", "Unsqueeze"};
  return std::any_of(movements.begin(), movements.end(), [&](std::string_view type) { return node.is(type); });
}

Ancestor scaled_input(const onnx::Node& node) {
  if (node.inputs.size() != 2 || node.input(0) == nullptr || node.input(1) == nullptr) return {};
  const auto number_in = [&](std::size_t i) {
    const auto constant = node.input(i)->constant();
    return constant ? constant->scalar() : std::nullopt;
  };
  const auto second = number_in(1);
  if (second && node.is("Sub")) return {node.input(0), 1, -*second};
  if (second && node.is("Div")) return {node.input(0), 1 / *second, 0};
  const auto number = second ? second : number_in(0);
  onnx::Value* value = node.input(second ? 0 : 1);
  if (number && node.is("Add")) return {value, 1, *number};
  if (number && node.is("Mul")) return {value, *number, 0};
  return {};
}

std::vector<Ancestor> ancestors_of(const Ancestor& of, bool is_scaled) {
  std::vector<Ancestor> all;
  for (Ancestor next = of; next.value != nullptr && !next.value->constant();) {
    all.push_back(next);
    const onnx::Node* node = next.value->producer;
    if (node == nullptr) break;
    const bool is_movement = moves_elements(*node);
    if (!is_movement && !is_scaled) break;
    const Ancestor input = is_movement ? Ancestor{node->input(0)} : scaled_input(*node);
    next = {input.value, next.scale * input.scale, next.offset + next.scale * input.offset};
  }
  return all;
}

}  // namespace graft::passes::deformable_attention
