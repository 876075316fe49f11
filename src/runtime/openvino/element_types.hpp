// Between ONNX's element types and OpenVINO's. For the sources of this folder only.
#pragma once

#include <openvino/core/type/element_type.hpp>

#include "onnx/tensor_data.hpp"

namespace graft::runtime {

[[nodiscard]] onnx::ElementType from_openvino(const ov::element::Type& type);  ///< undefined where ONNX has none.
[[nodiscard]] ov::element::Type to_openvino(onnx::ElementType type);           ///< dynamic where OpenVINO has none.

}  // namespace graft::runtime
