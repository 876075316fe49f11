// The engines that run models on the CPU.
#pragma once

#include <cstdint>

namespace graft::toolkit {

/// The engine that runs models for values, comparisons, proofs and calibration.
enum class CpuEngine : std::uint8_t {
  /// ONNX Runtime for returned values and for comparisons; OpenVINO for models that ONNX Runtime refuses or is known to
  /// compute wrongly, and where ONNX Runtime is not installed (results report that). OpenVINO for calibration and for
  /// proofs of single rewrites: each proof runs twice, and ONNX Runtime checks a sample of them and those in doubt.
  automatic,
  openvino,     ///< OpenVINO, which is linked into this library.
  onnxruntime,  ///< ONNX Runtime in a Python process, whose environment needs the package onnxruntime.
  /// Both engines run each proof and each comparison. Where they disagree on a model, the disagreement is reported and
  /// no verdict is given.
  both,
};

}  // namespace graft::toolkit
