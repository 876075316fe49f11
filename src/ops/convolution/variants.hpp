// The CUDA variants of Convolution, each in a file of its own.
#pragma once

#include "ops/convolution/convolution.hpp"

namespace graft::ops {

/// Tiles of `m` pixels and `n` channels of y; 0: whichever the estimate prefers, patches among them.
struct WgmmaShape {
  static constexpr int patches = -1;
  int m = 0;
  int n = 0;
  bool gathered = false;  ///< Pixels are copied 16 bytes at a time; only where it is asked for.
  [[nodiscard]] constexpr bool takes(int pixels, int channels) const {
    return m == 0 || (m == pixels && n == channels);
  }
  [[nodiscard]] constexpr bool takes_patches() const { return m <= 0; }
};

/// On Hopper: f16 and bf16 in hwc8, i8 in chw32, two spatial axes, one group. wgmma_sm90a.cu
[[nodiscard]] Status wgmma_fits(const Convolution& op, const Problem& problem, const WgmmaShape& shape = {});
[[nodiscard]] Status wgmma_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                               const CudaContext& context, const WgmmaShape& shape = {});

/// f16 and bf16 of up to 8 channels in hwc8, f32 of up to 4 there in TF32, i8 of up to 4 in chw32; one group, one or
/// two spatial axes. few_channels.cu
[[nodiscard]] Status few_channels_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status few_channels_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                      const CudaContext& context);

/// Linear f16 and bf16 of up to 8 channels, and f32 of up to 4 in TF32; one group, one or two spatial axes.
/// few_channels.cu
[[nodiscard]] Status few_channels_linear_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status few_channels_linear_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                             const CudaContext& context);

/// Up to 8 channels of y from hwc8, and from linear f16, bf16 and f32 in TF32; one group, one or two spatial axes.
/// few_outputs.cu
[[nodiscard]] Status few_outputs_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status few_outputs_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                     const CudaContext& context);

/// Groups of one channel, one or two spatial axes. depthwise.cu
[[nodiscard]] Status depthwise_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status depthwise_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                   const CudaContext& context);

/// hwc8 and chw32 in groups of 8, 16 or 32 channels, one or two spatial axes. grouped.cu
[[nodiscard]] Status grouped_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status grouped_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                 const CudaContext& context);

/// f16, bf16 and i8, one or two spatial axes, groups of whole chunks of channels. tensor_core.cu
[[nodiscard]] Status tensor_core_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status tensor_core_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                     const CudaContext& context);

/// Linear f16, bf16 and i8, as wgmma after a change of the layout. repacked.cu
[[nodiscard]] Status repacked_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status repacked_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                  const CudaContext& context);

/// Linear f32, one or two spatial axes; tf32: if the attribute allows it. f32.cu
[[nodiscard]] Status f32_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status f32_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                             const CudaContext& context);
[[nodiscard]] Status tf32_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status tf32_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                              const CudaContext& context);

/// f32 in TF32 on Hopper, one or two spatial axes, one group. tf32_sm90a.cu
[[nodiscard]] Status wgmma_tf32_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status wgmma_tf32_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                    const CudaContext& context);

/// Any problem: one thread to an element of y. Convolutions over three axes have no other variant. direct.cu
[[nodiscard]] Status direct_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status direct_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                const CudaContext& context);

}  // namespace graft::ops
