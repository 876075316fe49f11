// What runs models on the CPU.
#pragma once

#include <cstdint>

namespace graft::toolkit {

/// The engine that runs models for values, comparisons, proofs and calibration.
enum class CpuEngine : std::uint8_t {
  /// ONNX Runtime for the values that are returned and for comparisons; OpenVINO for what ONNX Runtime refuses or is
  /// known
  /// to compute wrongly, and where it is not installed: results say so. OpenVINO for calibration and for proofs of
  /// single
  /// rewrites, each repeated, and a sample of them checked in ONNX Runtime.
  automatic,
  openvino,     ///< Linked into this library.
  onnxruntime,  ///< In a Python process, as TensorRT is: the Python there has to have onnxruntime.
  /// Each proof and comparison is run by both. Where they disagree on a model, a disagreement is reported and no
  /// verdict is
  /// given.
  both,
};

}  // namespace graft::toolkit
