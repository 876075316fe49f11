// Conversion between the element types of ONNX and OpenVINO. Only for the sources of this folder.
#pragma once

#include <openvino/core/type/element_type.hpp>

#include "onnx/tensor_data.hpp"

namespace graft::runtime {

/// Returns `undefined` if ONNX has no such type.
[[nodiscard]] onnx::ElementType from_openvino(const ov::element::Type& type);
/// Returns `dynamic` if OpenVINO has no such type.
[[nodiscard]] ov::element::Type to_openvino(onnx::ElementType type);

}  // namespace graft::runtime
