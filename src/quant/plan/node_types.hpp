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

/// The type in which a node computes, and which of its inputs and outputs have that type.
struct NodePlan {
  NodeType type = NodeType::none;
  /// Whether the node computes the same result in any type, as Transpose does. Its type is then chosen by
  /// settle_flexible_nodes() so that the fewest Casts are needed.
  bool flexible = false;
  bool by_form = false;
  bool refused_in_f32 = false;  ///< Whether TypedOptions::refusal refuses the node in f32 too.
  std::string key;              ///< The node's key_of before tensors are renamed.
  std::string reason;
  std::vector<bool> inputs;   ///< Whether each input has the node's type.
  std::vector<bool> outputs;  ///< Whether each output has the node's type.
};
using NodePlans = std::unordered_map<const onnx::Node*, NodePlan>;

/// The nodes that are refused by TypedOptions::refusal in the narrow type: a map from their key_of() to the reason.
using RefusedNodes = std::map<std::string, std::string, std::less<>>;

/// Returns the plan of a node without regard to other nodes. Nodes in `known` stay in f32.
[[nodiscard]] NodePlan plan_node(const onnx::Node& node, const TypedOptions& options, const RefusedNodes& known);

/// Decides the types of the flexible nodes in `plans`, so that no Cast is followed by its inverse Cast. `nodes` are all
/// nodes of the graph in topological order. If `typed_io` is true, the inputs and outputs of the network have the
/// narrow type (f16 or bf16), otherwise f32.
void settle_flexible_nodes(NodePlans& plans, const std::vector<onnx::Node*>& nodes, bool typed_io);

/// A constant converted to the narrow type (f16 or bf16), and an element that the type cannot represent.
struct ConstantFit {
  double beyond = 0;     ///< An element beyond the range of the type; 0 if all elements are within it.
  double vanishing = 0;  ///< An element that becomes 0 in the type, if all elements become 0; otherwise 0.
  /// The converted constant. Elements beyond the range are replaced by the largest value of the type, and elements that
  /// would become 0 by the smallest.
  onnx::TensorData converted{};
};
[[nodiscard]] ConstantFit fit(const onnx::TensorData& tensor, onnx::ElementType narrow);

/// Returns the types of an operator in the newest opset that has it, or null if the operator is unknown or allows only
/// f32 for its floating-point inputs.
[[nodiscard]] const onnx::SchemaTypes* types_to_narrow(std::string_view op_type);
/// Returns the lowest opset in which all inputs that may be narrowed allow the type `narrow`, or 0 if no opset does.
[[nodiscard]] std::int64_t narrow_since(const onnx::SchemaTypes& newest, onnx::ElementType narrow);
/// Returns whether a node has the attribute `dtype`, which sets the type of its output. Without it, the output has the
/// type of the input; ONNX's schemas do not express that.
[[nodiscard]] bool has_type_of_output(const onnx::Node& node);

[[nodiscard]] bool has_f32_tensor(const onnx::Node& node);
/// Returns the name of the type, "f16" or "bf16".
[[nodiscard]] std::string_view narrow_name(onnx::ElementType type);
[[nodiscard]] double largest_number(onnx::ElementType type);
/// Returns the smallest positive number of f16 or bf16 (subnormal numbers included).
[[nodiscard]] double smallest_number(onnx::ElementType type);

}  // namespace graft::quant
