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

/// The way in which a node could compute in int8, whatever the nodes around it do.
struct Int8Form {
  enum class What : std::uint8_t { weighted, moves, adds, averages, graft, none };
  What what = What::none;
  /// The reason why the node has no int8 form although a user might expect one, as a clause for the report; otherwise
  /// empty.
  std::string refusal;
  std::optional<std::size_t> axis;
  bool shares_scale = false;
};
using Int8Forms = std::unordered_map<const onnx::Node*, Int8Form>;

/// Returns the int8 form of a node. `before` must contain the forms of the nodes that compute its inputs.
[[nodiscard]] Int8Form form_of(const onnx::Node& node, EightBits type, const Int8Forms& before);

/// Returns whether a value is an f32 tensor that is not a constant.
[[nodiscard]] bool is_activation(const onnx::Value* value);
[[nodiscard]] std::vector<std::size_t> activations_of(const onnx::Node& node);

}  // namespace graft::quant
