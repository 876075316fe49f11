// Element types through the text of a function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onnx/model.hpp"
#include "onnx/opset.hpp"

namespace graft::onnx {

/// What becomes of the text of an operator.
enum class BodyUse {
  function,  ///< A function in a file, of whose operator set it has to be.
  layers     ///< Layers of TensorRT: operators and attributes of operator set 17, types of any newer one as well.
};

/// A row of types of an operator, in which the types of a text are followed.
struct FollowedRow {
  std::string words;  ///< "in f16"
  BodyUse use = BodyUse::function;
  std::int64_t oldest_opset = working_opset;  ///< That a model may be in whose tensors have these types.
};

/// The first operator set that models with this type are in: those in bf16 are raised where a function needs it, and
/// no older one than 19 has f8.
[[nodiscard]] std::int64_t oldest_opset_with(ElementType type);

/// Infers the types of the node's outputs from those of its inputs, by the rules of infer_shapes. What is wrong with
/// the types of its inputs, by ONNX's schemas, and how to mend it, or with its shapes; nothing where a type that is not
/// known may be right. Of a function it is wrong where one operator set from the row's oldest on refuses it. Of layers
/// it is wrong where all from 17 on do.
[[nodiscard]] std::optional<std::string> type_fault(Node& node, const FollowedRow& row);

/// The first operator set from 17 on that takes the types of the node's inputs; 17 where none does, which type_fault
/// says.
[[nodiscard]] std::int64_t first_opset_for_types(const Node& node);

}  // namespace graft::onnx
