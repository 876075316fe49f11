// The cost of a plan on a device, estimated where no device can measure its speed.
#pragma once

#include "onnx/model.hpp"
#include "quant/plan/int8_plan.hpp"

namespace graft::quant {

/// The cost of one run, with 1 for each dynamic dimension.
struct Int8Cost {
  /// The bytes that layers read and write: tensors and weights, 1 byte for a number in int8 and 4 in f32.
  double bytes_moved = 0;
  double int8_multiply_adds = 0;
  double f32_multiply_adds = 0;

  /// Returns the multiply-adds as if all were in int8: tensor cores compute 16 in int8 in the time of one in f32
  /// without them (A100: 624 T against 19.5 T operations per second, by its data sheet; with TF32 four).
  [[nodiscard]] double weighted_multiply_adds() const;
};

/// Returns the cost of a plan. Nodes that TensorRT fuses into int8 kernels, and nodes that only move int8, do not
/// count.
[[nodiscard]] Int8Cost cost_of(const onnx::Model& prepared, const Int8Plan& plan);

}  // namespace graft::quant
