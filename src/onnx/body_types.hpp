// Infers and checks element types in the text of an operator's function or native form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onnx/model.hpp"
#include "onnx/opset.hpp"

namespace graft::onnx {

/// The purpose of an operator's text.
enum class BodyUse {
  function,  ///< The text becomes a model-local function and must be valid in the opset of the model.
  /// The text becomes layers of TensorRT: operators and attributes of opset 17, with the types of any newer opset.
  layers
};

/// A row of an operator's types, from which the types inside a text are inferred.
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
/// if there is no fault, or if an unknown type may be valid. In a function the types are wrong if any opset from the
/// row's oldest one on refuses them; in layers, if every opset from 17 on does.
[[nodiscard]] std::optional<std::string> type_fault(Node& node, const FollowedRow& row);

/// Returns the lowest opset >= 17 that accepts the types of the node's inputs, or 17 if no opset does, which
/// type_fault() reports.
[[nodiscard]] std::int64_t first_opset_for_types(const Node& node);

}  // namespace graft::onnx
