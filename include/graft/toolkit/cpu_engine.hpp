// What runs models on the CPU.
#pragma once

#include <cstdint>

namespace graft::toolkit {

/// Who runs models for proofs, comparisons and calibration.
enum class CpuEngine : std::uint8_t {
  openvino,     ///< Linked into this library.
  onnxruntime,  ///< In a Python process, as TensorRT is: the Python there has to have onnxruntime.
};

}  // namespace graft::toolkit
