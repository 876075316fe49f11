// What TensorRT does with standard ONNX operators, by rule.
#pragma once

#include <optional>
#include <string>

#include "graph/model.hpp"

namespace graft::cli {

/// Why TensorRT cannot run a node of the standard domain; nothing where it can. Measured with TensorRT-RTX 1.7: the
/// operators that its parser refuses, and forms that its parser or builder refuses of operators it has otherwise.
[[nodiscard]] std::optional<std::string> refusal_of_tensorrt(const Node& node);

/// Something to know about a node that TensorRT runs; empty for most.
[[nodiscard]] std::string remark_on_native(const Node& node);

}  // namespace graft::cli
