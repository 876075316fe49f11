// Writes a readable dump of a model.
#pragma once

#include <string>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns a dump with one line per node: `y: f32[N, 10] = Gemm<transB=1>(x, w, b)  # name`. Long constants are
/// shortened.
[[nodiscard]] std::string to_text(const Model& model);
[[nodiscard]] std::string to_text(const Graph& graph);
[[nodiscard]] std::string to_text(const Node& node);
[[nodiscard]] std::string to_text(const NodeAttribute& attribute);
/// Returns type and shape, such as `f32[N, 10]`; `?` stands for unknown parts.
[[nodiscard]] std::string type_text(const Value& value);
/// Returns the text of a dimension, or `?` if it depends on an unknown size, whose name is internal.
[[nodiscard]] std::string size_text(const Dim& dim);

}  // namespace graft::onnx
