// What runs models on the CPU.
#pragma once

#include <cstdint>

namespace graft::toolkit {

/// Who runs models for proofs, comparisons and calibration.
enum class CpuEngine : std::uint8_t {
  /// OpenVINO, and ONNX Runtime, where it is installed, for what OpenVINO refuses, to look again at a difference that
  /// was
  /// found, and for a sample: proofs and comparisons of networks of 50 nodes and more are run by both once.
  automatic,
  openvino,     ///< Linked into this library.
  onnxruntime,  ///< In a Python process, as TensorRT is: the Python there has to have onnxruntime.
  /// Each proof and comparison is run by both. Where they disagree on a model neither is believed.
  both,
};

}  // namespace graft::toolkit
