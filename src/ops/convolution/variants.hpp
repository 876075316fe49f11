// The CUDA variants of Convolution, each in its own file.
#pragma once

#include "ops/convolution/convolution.hpp"

namespace graft::ops {

/// The tiles that a wgmma variant may use: `m` pixels x `n` channels of y. With m = 0 the estimate chooses among all
/// tiles and patches, with m = `patches` among the patches.
struct WgmmaShape {
  static constexpr int patches = -1;
  int m = 0;
  int n = 0;
  bool gathered = false;  ///< Whether pixels are copied 16 bytes at a time; only the wgmma_gathered variants do.
  [[nodiscard]] constexpr bool takes(int pixels, int channels) const {
    return m == 0 || (m == pixels && n == channels);
  }
  [[nodiscard]] constexpr bool takes_patches() const { return m <= 0; }
};

/// Returns ok for f16 and bf16 in hwc8 and i8 in chw32 on Hopper, with two spatial axes and one group; otherwise
/// unsupported. Defined in wgmma_sm90a.cu.
[[nodiscard]] Status wgmma_fits(const Convolution& op, const Problem& problem, const WgmmaShape& shape = {});
[[nodiscard]] Status wgmma_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                               const CudaContext& context, const WgmmaShape& shape = {});

/// Returns ok for f16 and bf16 of up to 8 channels in hwc8, f32 of up to 4 channels in hwc8 (in TF32) and i8 of up to 4
/// channels in chw32, with one group and one or two spatial axes; otherwise unsupported. Defined in few_channels.cu.
[[nodiscard]] Status few_channels_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status few_channels_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                      const CudaContext& context);

/// Returns ok for linear f16 and bf16 of up to 8 channels and linear f32 of up to 4 channels (in TF32), with one group
/// and one or two spatial axes; otherwise unsupported. Defined in few_channels.cu.
[[nodiscard]] Status few_channels_linear_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status few_channels_linear_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                             const CudaContext& context);

/// Returns ok for up to 8 channels of y in hwc8 and in linear f16, bf16 and f32 (f32 in TF32), with one group and one
/// or two spatial axes; otherwise unsupported. Defined in few_outputs.cu.
[[nodiscard]] Status few_outputs_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status few_outputs_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                     const CudaContext& context);

/// Returns ok for groups of one channel with one or two spatial axes; otherwise unsupported. Defined in depthwise.cu.
[[nodiscard]] Status depthwise_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status depthwise_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                   const CudaContext& context);

/// Returns ok for hwc8 of 16-bit types and chw32 in groups of 8, 16 or 32 channels (i8: 32) with one or two spatial
/// axes; otherwise unsupported. Defined in grouped.cu.
[[nodiscard]] Status grouped_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status grouped_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                 const CudaContext& context);

/// Returns ok for f16, bf16 and i8 with one or two spatial axes; otherwise unsupported. Groups must consist of whole
/// vectors of channels or, in linear layout, of at least half a 16-byte chunk. Defined in tensor_core.cu.
[[nodiscard]] Status tensor_core_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status tensor_core_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                     const CudaContext& context);

/// Returns ok for linear f16, bf16 and i8 that wgmma supports in a vector layout; otherwise unsupported. repacked_run()
/// copies the tensors to that layout and runs wgmma. Defined in repacked.cu.
[[nodiscard]] Status repacked_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status repacked_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                  const CudaContext& context);

/// Returns ok for linear f32 with one or two spatial axes; otherwise unsupported. tf32_fits() also requires the
/// attribute allow_tf32. Defined in f32.cu.
[[nodiscard]] Status f32_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status f32_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                             const CudaContext& context);
[[nodiscard]] Status tf32_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status tf32_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                              const CudaContext& context);

/// Returns ok for f32 in TF32 on Hopper with one or two spatial axes and one group; otherwise unsupported. Defined in
/// tf32_sm90a.cu.
[[nodiscard]] Status wgmma_tf32_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status wgmma_tf32_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                    const CudaContext& context);

/// Returns ok for any problem. direct_run() uses one thread per element of y. Convolutions over three axes have no
/// other variant. Defined in direct.cu.
[[nodiscard]] Status direct_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status direct_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                const CudaContext& context);

}  // namespace graft::ops
