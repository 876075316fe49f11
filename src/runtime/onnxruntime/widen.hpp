// Makes f32 of f16 and bf16 inside a model.
#pragma once

#include <map>
#include <string>

#include "onnx/model.hpp"

namespace graft::runtime {

/// Inputs and outputs that were f16 or bf16.
struct NarrowTypes {
  std::map<std::string, onnx::ElementType, std::less<>> inputs;
  std::map<std::string, onnx::ElementType, std::less<>> outputs;
};

/// Every f16 and bf16 tensor of the model becomes f32, and the caller rounds the outputs. A Cast or CastLike to either
/// rounds, as it does in OpenVINO; with `round_inside` so does every node that makes one of either. ONNX Runtime itself
/// has hardly any kernels of bf16, and those of f16 that it lacks it replaces by f32 between two casts, so that what is
/// rounded would depend on its version. Functions are inlined where there is anything to widen; a model of other types
/// stays as it is.
NarrowTypes widen_narrow_types(onnx::Model& model, bool round_inside);

}  // namespace graft::runtime
