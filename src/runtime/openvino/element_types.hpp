// Converts between the element types of ONNX and OpenVINO. Used only by the sources in this folder.
#pragma once

#include <openvino/core/type/element_type.hpp>

#include "onnx/tensor_data.hpp"

namespace graft::runtime {

/// Returns the ONNX type, or `undefined` if ONNX has no such type.
[[nodiscard]] onnx::ElementType from_openvino(const ov::element::Type& type);
/// Returns the OpenVINO type, or `dynamic` if OpenVINO has no such type.
[[nodiscard]] ov::element::Type to_openvino(onnx::ElementType type);

}  // namespace graft::runtime
