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

/// States how the operator of a node could use int8, regardless of the types in which the nodes around it compute.
struct Int8Form {
  enum class What : std::uint8_t { weighted, moves, adds, averages, graft, none };
  What what = What::none;
  /// The reason why the node cannot use int8 although a user might expect that it can, as a clause for the report;
  /// otherwise empty.
  std::string refusal;
  std::optional<std::size_t> axis;
  bool shares_scale = false;
};
using Int8Forms = std::unordered_map<const onnx::Node*, Int8Form>;

/// Returns how a node could use int8 (or f8, if `type` is f8). `before` must contain the results for the nodes that
/// compute its inputs.
[[nodiscard]] Int8Form form_of(const onnx::Node& node, EightBits type, const Int8Forms& before);

/// Returns whether a value is an f32 tensor that is not a constant.
[[nodiscard]] bool is_activation(const onnx::Value* value);
[[nodiscard]] std::vector<std::size_t> activations_of(const onnx::Node& node);

}  // namespace graft::quant
