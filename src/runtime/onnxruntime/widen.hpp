// Replaces f16 and bf16 with f32 inside a model.
#pragma once

#include <map>
#include <string>

#include "onnx/model.hpp"

namespace graft::runtime {

/// The inputs and outputs that were f16 or bf16 before widening.
struct NarrowTypes {
  std::map<std::string, onnx::ElementType, std::less<>> inputs;
  std::map<std::string, onnx::ElementType, std::less<>> outputs;
};

/// Converts every f16 and bf16 tensor of the model to f32; the caller rounds the outputs. A Cast or CastLike to f16 or
/// bf16 still rounds, as it does in OpenVINO. With `round_inside`, every node that computes such a tensor rounds,
/// except nodes that only move data. The conversion is needed because ONNX Runtime has hardly any bf16 kernels and
/// replaces missing f16 kernels with f32 kernels between two casts, so that the places of rounding would depend on its
/// version. Functions are inlined if there is anything to convert; a model without f16 and bf16 is not changed.
NarrowTypes widen_narrow_types(onnx::Model& model, bool round_inside);

}  // namespace graft::runtime
