// Plans the type in which each node computes: by itself, from what ONNX, Graft and its constants allow, and then, for
// nodes that work in any type, from the types of their neighbors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/schema_types.hpp"
#include "quant/plan/typed.hpp"

namespace graft::quant {

/// The decision on a node, and the types of its inputs and outputs.
struct NodePlan {
  NodeType type = NodeType::none;
  /// Whether the node works in any type without rounding, so that its type is chosen to need the fewest casts.
  bool flexible = false;
  bool by_form = false;
  bool refused_in_f32 = false;  ///< Whether TypedOptions::refusal refuses the node in f32 too.
  std::string key;              ///< The node's key_of before tensors are renamed.
  std::string reason;
  std::vector<bool> inputs;   ///< Whether each input has the node's type.
  std::vector<bool> outputs;  ///< Whether each output has the node's type.
};
using NodePlans = std::unordered_map<const onnx::Node*, NodePlan>;

/// Maps the key_of a refused node to the reason.
using RefusedNodes = std::map<std::string, std::string, std::less<>>;

/// Returns the plan of a node by itself. Nodes in `known` are refused in the type, and stay in f32.
[[nodiscard]] NodePlan plan_node(const onnx::Node& node, const TypedOptions& options, const RefusedNodes& known);

/// Decides the type of nodes that work in any type, so that no Cast is followed by its inverse Cast. `nodes` are all
/// nodes of the graph, in its order.
void settle_flexible_nodes(NodePlans& plans, const std::vector<onnx::Node*>& nodes, bool typed_io);

/// A constant in the narrow type, and the elements that the type cannot represent.
struct ConstantFit {
  double beyond = 0;     ///< An element beyond the range of the type; 0 if all elements are within it.
  double vanishing = 0;  ///< An element that becomes 0 in the type, if all elements become 0; otherwise 0.
  /// The converted constant. Elements beyond the range become the largest value of the type, and vanishing elements the
  /// smallest.
  onnx::TensorData converted{};
};
[[nodiscard]] ConstantFit fit(const onnx::TensorData& tensor, onnx::ElementType narrow);

/// Returns the types in the newest opset that has the operator, or null if none of its inputs can have another type.
[[nodiscard]] const onnx::SchemaTypes* types_to_narrow(std::string_view op_type);
/// Returns the opset from which all inputs that can change their type may have this one; 0 if no opset allows it.
[[nodiscard]] std::int64_t narrow_since(const onnx::SchemaTypes& newest, onnx::ElementType narrow);
/// Returns whether the node's attribute `dtype` is the type of its output. Without the attribute the output has the
/// type of the input, which the schemas do not express.
[[nodiscard]] bool has_type_of_output(const onnx::Node& node);

[[nodiscard]] bool has_f32_tensor(const onnx::Node& node);
/// Returns "f16" or "bf16".
[[nodiscard]] std::string_view narrow_name(onnx::ElementType type);
[[nodiscard]] double largest_number(onnx::ElementType type);
/// Returns the smallest positive number of f16 or bf16.
[[nodiscard]] double smallest_number(onnx::ElementType type);

}  // namespace graft::quant
