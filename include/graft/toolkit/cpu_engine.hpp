// The engines that run models on the CPU.
#pragma once

#include <cstdint>

namespace graft::toolkit {

/// The engine that runs models for values, comparisons, proofs and calibration.
enum class CpuEngine : std::uint8_t {
  /// ONNX Runtime computes returned values and comparisons. OpenVINO replaces it for models that ONNX Runtime refuses
  /// or is known to compute wrongly, and where ONNX Runtime is not installed; results report the replacement. OpenVINO
  /// runs calibration and proofs of single rewrites: each proof runs twice, and ONNX Runtime repeats a sample of the
  /// proofs and those whose result is doubtful.
  automatic,
  openvino,     ///< OpenVINO, which is linked into this library.
  onnxruntime,  ///< ONNX Runtime in a Python process, whose environment needs the package onnxruntime.
  /// Both engines run each proof and each comparison. Where they disagree on a model, the disagreement is reported and
  /// no verdict is given.
  both,
};

}  // namespace graft::toolkit
