// What a plan would cost a device: a stand-in for its speed, on a machine that has none.
#pragma once

#include "onnx/model.hpp"
#include "quant/int8_plan.hpp"

namespace graft::quant {

/// Of one run; open dimensions count as 1.
struct Int8Cost {
  double bytes_moved = 0;  ///< What layers read and write: tensors and weights, 1 byte in int8 and 4 in f32.
  double int8_multiply_adds = 0;
  double f32_multiply_adds = 0;

  /// Multiply-adds as if all were of int8: tensor cores make 16 of int8 in the time of one of f32 without them (A100:
  /// 624 T against 19.5 T operations per second, by its data sheet; with TF32 four).
  [[nodiscard]] double weighted_multiply_adds() const;
};

/// Convolutions, matrix products and operators of Graft count; what TensorRT makes part of them, and what only moves
/// elements, does not.
[[nodiscard]] Int8Cost cost_of(const onnx::Model& prepared, const Int8Plan& plan);

}  // namespace graft::quant
