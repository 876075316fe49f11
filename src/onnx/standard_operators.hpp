// Facts about ONNX's own operators that neither their schemas (schema.hpp) nor their defaults (operator_node.hpp)
// state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace graft::onnx {

struct Model;
struct Node;

/// Returns the opset in which an operator of ai.onnx first appears; 0 for an unknown one.
[[nodiscard]] std::int64_t first_version(std::string_view op_type);

/// Returns the operator of ai.onnx whose name differs from `op_type` by a typing error, or nothing.
[[nodiscard]] std::optional<std::string> nearest_standard_operator(std::string_view op_type);

/// Returns the operator of ai.onnx that a misspelled node probably means, or nothing. The number of inputs and outputs
/// of the node and its attributes must fit that operator. Operators of com.microsoft belong to ONNX Runtime and are not
/// considered misspelled.
[[nodiscard]] std::optional<std::string> standard_operator_meant(const Node& node);

/// The domain of ONNX's operators that may still change.
inline constexpr std::string_view preview_domain = "ai.onnx.preview";
/// The domain of the operators that ONNX Runtime adds to those of ONNX.
inline constexpr std::string_view onnxruntime_domain = "com.microsoft";

/// Returns whether a node belongs to ONNX Runtime: it is of the domain com.microsoft, or its operator is
/// SimplifiedLayerNormalization, which ONNX Runtime has without a domain.
[[nodiscard]] bool is_of_onnxruntime(const Node& node);

/// Returns whether ONNX Runtime may be able to run a node, because its operator is one of ONNX or of com.microsoft, or
/// a function in the file.
[[nodiscard]] bool may_be_of_onnxruntime(const Model& model, const Node& node);

/// Returns whether a node of an operator of ai.onnx must be rewritten to convert it from opset `a` to `b` or back.
[[nodiscard]] bool form_changed(std::string_view op_type, std::int64_t a, std::int64_t b);

/// An attribute that is an input in newer opsets.
struct AttributeInput {
  std::string_view op_type;
  std::string_view attribute;
  std::size_t input;
  std::int64_t until;  ///< The opset from which the attribute is an input.
};
[[nodiscard]] std::span<const AttributeInput> attribute_inputs(std::string_view op_type);

}  // namespace graft::onnx
