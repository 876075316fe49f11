// The sizes of one convolution, and what happens to its sums: what the reference and every CUDA kernel work from.
#pragma once

#include <array>
#include <cmath>

#include "graft/elementwise.hpp"
#include "ops/convolution/convolution.hpp"

namespace graft::ops {

/// One spatial axis.
struct ConvolutionAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t pad = 0;  ///< Before; what lies after follows from `out`.
  std::int64_t dilation = 1;
};

/// Convolutions over fewer than three axes have leading ones of size 1.
struct ConvolutionPlan {
  static constexpr int axes = 3;
  std::int64_t batch = 0;
  std::int64_t channels = 0;  ///< Of x.
  std::int64_t outputs = 0;   ///< Channels of y.
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

/// Of a problem that `check` accepts.
[[nodiscard]] ConvolutionPlan plan_convolution(const Convolution& op, const Problem& problem);

/// x and weight of linear f16, bf16 and i8 on their way to tensor cores: N,spatial,C and K,window,C, the channels of
/// each group filled up with zeros to chunks of 16 bytes. Both lie in the workspace, x first.
struct RepackedSizes {
  std::int64_t group_channels;
  std::int64_t x_bytes;
  std::int64_t weight_bytes;

  [[nodiscard]] static RepackedSizes of(const ConvolutionPlan& plan, DType dtype);
};

/// A problem of linear tensors of a type that has a vector layout, in that layout, and where its tensors lie in the
/// workspace: x at 0.
struct VectorProblem {
  std::array<TensorDesc, 4> inputs;
  std::array<TensorDesc, 1> outputs;
  std::int64_t weight;
  std::int64_t y;
  std::int64_t bytes;  ///< Of all three.

  explicit VectorProblem(const Problem& linear);
  [[nodiscard]] Problem problem() const { return {inputs, outputs}; }
};

/// From a sum to an element of y, the same for the reference (i8 only) and the CUDA kernels, bit by bit: operations are
/// spelled out so that no compiler contracts them its own way.
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
  /// The same for several numbers, told apart by activation once.
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
  /// The factor of a channel's sums.
  [[nodiscard]] GRAFT_HOST_DEVICE float factor(float scale) const { return quantized ? x_scale * scale : 1.F; }
  [[nodiscard]] GRAFT_HOST_DEVICE float apply(float sum, float factor, float bias) const {
    return activate(fmaf(sum, factor, bias));
  }
};

}  // namespace graft::ops
