// Infers and checks element types in the text of an operator's function or native form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onnx/model.hpp"
#include "onnx/opset.hpp"

namespace graft::onnx {

/// The purpose of the text by which an operator is defined in terms of ONNX operators.
enum class BodyUse {
  function,  ///< The text becomes a model-local function and must be valid in the opset of the model.
  /// The text becomes native layers of TensorRT. It may use operators and attributes of opset 17, with the types that
  /// any newer opset allows.
  layers
};

/// Describes the combination of input and output types for which the text of an operator is checked (type_fault). The
/// types of the values inside the text are inferred from these types.
struct FollowedRow {
  std::string words;  ///< The types of the row for messages, such as "in f16".
  BodyUse use = BodyUse::function;
  std::int64_t oldest_opset = working_opset;  ///< The lowest opset of a model whose tensors have these types.
};

/// Returns the lowest opset of models with this type. Models in bf16 are raised to bf16_opset if a function needs it,
/// and f8 exists only from f8_opset on.
[[nodiscard]] std::int64_t oldest_opset_with(ElementType type);

/// Infers the types of the node's outputs from the types of its inputs, by the rules of infer_shapes. Returns why
/// ONNX's schemas refuse the types of the inputs and how to fix that, or what is wrong with the shapes. Returns nothing
/// if there is no fault, or if an unknown type may be valid. If row.use is BodyUse::function, types are wrong if any
/// opset from row.oldest_opset on refuses them. If it is BodyUse::layers, they are wrong if every opset from 17 on
/// does.
[[nodiscard]] std::optional<std::string> type_fault(Node& node, const FollowedRow& row);

/// Returns the lowest opset >= 17 that accepts the types of the node's inputs, or 17 if no opset does, which
/// type_fault() reports.
[[nodiscard]] std::int64_t first_opset_for_types(const Node& node);

}  // namespace graft::onnx
