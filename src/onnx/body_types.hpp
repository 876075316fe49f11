// Element types through the text of a function.
#pragma once

#include <optional>
#include <string>

#include "onnx/model.hpp"

namespace graft::onnx {

/// What becomes of the text of an operator.
enum class BodyUse {
  function,  ///< A function in a file, of whose operator set it has to be.
  layers     ///< Layers of TensorRT, which do not depend on an operator set.
};

/// A row of types of an operator, in which the types of a text are followed.
struct FollowedRow {
  std::string words;  ///< "in f16"
  BodyUse use = BodyUse::function;
};

/// Infers the types of the node's outputs from those of its inputs, by the rules of infer_shapes. What is wrong with
/// the types of its inputs, by ONNX's schemas, and how to mend it, or with its shapes; nothing where a type that is not
/// known may be right. Of a function it is wrong where one operator set refuses it: f8 counts from 19 on, which has it
/// first, bf16 from 22 on, to which a network in bf16 is raised, and others from 17 on. Of layers it is wrong where all
/// do.
[[nodiscard]] std::optional<std::string> type_fault(Node& node, BodyUse use);

}  // namespace graft::onnx
