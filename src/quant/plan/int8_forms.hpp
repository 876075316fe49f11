// Finds the form in which a node could compute in int8 or f8, whatever its neighbors are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "quant/plan/int8_plan.hpp"

namespace graft::quant {

/// The form in which a node could compute in int8, regardless of its neighbors.
struct Int8Form {
  enum class What : std::uint8_t { weighted, moves, adds, averages, graft, none };
  What what = What::none;
  /// Why the node has no other form in int8, if a reader of the report might expect one.
  std::string refusal;
  std::optional<std::size_t> axis;
  bool shares_scale = false;
};
using Int8Forms = std::unordered_map<const onnx::Node*, Int8Form>;

/// Returns the form of a node. `before` contains the forms of the nodes before it.
[[nodiscard]] Int8Form form_of(const onnx::Node& node, EightBits type, const Int8Forms& before);

/// Returns whether a value is an f32 tensor that is not a constant.
[[nodiscard]] bool is_activation(const onnx::Value* value);
[[nodiscard]] std::vector<std::size_t> activations_of(const onnx::Node& node);

}  // namespace graft::quant
