// The sizes of one convolution and the operations on its sums, which the reference and all CUDA kernels share.
#pragma once

#include <array>
#include <cmath>

#include "graft/operator/elementwise.hpp"
#include "ops/convolution/convolution.hpp"

namespace graft::ops {

/// The sizes of one spatial axis, in elements.
struct ConvolutionAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  /// The number of zeros before the first element; the number after the last one follows from `out`.
  std::int64_t pad = 0;
  std::int64_t dilation = 1;
};

/// The sizes of a convolution over three spatial axes. A convolution with fewer axes has leading axes of size 1.
struct ConvolutionPlan {
  static constexpr int axes = 3;
  std::int64_t batch = 0;
  std::int64_t channels = 0;  ///< The number of channels of x.
  std::int64_t outputs = 0;   ///< The number of channels of y.
  std::int64_t group = 1;
  ConvolutionAxis axis[axes];

  [[nodiscard]] GRAFT_HOST_DEVICE std::int64_t group_channels() const { return channels / group; }
  [[nodiscard]] GRAFT_HOST_DEVICE std::int64_t group_outputs() const { return outputs / group; }
  [[nodiscard]] GRAFT_HOST_DEVICE std::int64_t in_pixels() const { return axis[0].in * axis[1].in * axis[2].in; }
  [[nodiscard]] GRAFT_HOST_DEVICE std::int64_t out_pixels() const { return axis[0].out * axis[1].out * axis[2].out; }
  [[nodiscard]] GRAFT_HOST_DEVICE std::int64_t window() const {
    return axis[0].kernel * axis[1].kernel * axis[2].kernel;
  }
};

/// Returns the sizes of a problem that Convolution::check() accepts.
[[nodiscard]] ConvolutionPlan plan_convolution(const Convolution& op, const Problem& problem);

/// Sizes of the copies of linear x and weight that tensor cores read (f32 in TF32, f16, bf16 and i8): N,spatial,C and
/// K,window,C, the channels of each group padded with zeros to chunks of 16 bytes. Both copies lie in the workspace, x
/// first.
struct RepackedSizes {
  std::int64_t group_channels;
  std::int64_t x_bytes;
  std::int64_t weight_bytes;

  [[nodiscard]] static RepackedSizes of(const ConvolutionPlan& plan, DType dtype);
};

/// A problem of linear tensors converted to the vector layout of their type (hwc8 for 16-bit types, chw32 for i8), with
/// the byte offsets of weight and y in the workspace. x is at offset 0.
struct VectorProblem {
  std::array<TensorDesc, 4> inputs;
  std::array<TensorDesc, 1> outputs;
  std::int64_t weight;
  std::int64_t y;
  std::int64_t bytes;  ///< The size of x, weight and y together in bytes.

  explicit VectorProblem(const Problem& linear);
  [[nodiscard]] Problem problem() const { return {inputs, outputs}; }
};

/// Converts a sum to the real value of an element of y. The operations are written out, so that compilers cannot
/// contract them differently. The i8 results of the reference and of the CUDA kernels therefore agree bit by bit.
struct ConvolutionEpilogue {
  Activation activation;
  float alpha;
  bool quantized;
  float x_scale;
  float y_scale;

  [[nodiscard]] static ConvolutionEpilogue of(const Convolution& op, DType dtype) {
    return {op.activation, op.alpha, dtype == DType::i8, op.x_scale, op.y_scale};
  }
  template <class T>
  [[nodiscard]] GRAFT_HOST_DEVICE T activate(T value) const {
    switch (activation) {
      case Activation::none: break;
      case Activation::relu: return value < T(0) ? T(0) : value;
      case Activation::relu6: return value < T(0) ? T(0) : value > T(6) ? T(6) : value;
      case Activation::leaky_relu: return value >= T(0) ? value : T(alpha) * value;
    }
    return value;
  }
  /// Replaces several values with the results of the activation, with one branch on the activation for all of them.
  template <int N>
  GRAFT_HOST_DEVICE void activate_all(float (&values)[N]) const {
    const auto all = [&](Activation known) {
      ConvolutionEpilogue each = *this;
      each.activation = known;
      for (float& value : values) value = each.activate(value);
    };
    switch (activation) {
      case Activation::none: break;
      case Activation::relu: all(Activation::relu); break;
      case Activation::relu6: all(Activation::relu6); break;
      case Activation::leaky_relu: all(Activation::leaky_relu); break;
    }
  }
  /// Returns the factor for the sums of a channel whose weights have this scale.
  [[nodiscard]] GRAFT_HOST_DEVICE float factor(float scale) const { return quantized ? x_scale * scale : 1.F; }
  [[nodiscard]] GRAFT_HOST_DEVICE float apply(float sum, float factor, float bias) const {
    return activate(fmaf(sum, factor, bias));
  }
};

}  // namespace graft::ops
