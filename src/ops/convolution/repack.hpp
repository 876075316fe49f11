// Linear tensors to and from layouts whose pixels have their channels side by side: hwc8 for 16-bit types, chw32 for
// i8; f32, on the way there only and rounded to TF32, in pixels of whole 16 bytes.
#pragma once

#include "graft/tensor.hpp"
#include "ops/convolution/plan.hpp"

namespace graft::ops {

/// images x channels x pixels (linear) beside images x (planes x) pixels x channels of a vector layout, and how many
/// pixels of a channel can be loaded at once.
struct RepackJob {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t plane_stride = 0;  ///< Elements of one plane of channels, of chw32.
  std::int64_t image_stride = 0;  ///< Elements of an image in the vector layout.
  int pixel_stride = 0;           ///< Elements of a pixel there.
  int channels = 0;
  int stored_channels = 0;
  int pixels = 0;
  int vector = 1;
  int pixel_tiles = 0;
  int channel_tiles = 0;
  std::int64_t blocks = 0;

  /// Of a tensor whose linear form begins at `linear`; `from` and `to` are left open.
  [[nodiscard]] static RepackJob of(DType dtype, const Extents& extents, const void* linear);
};

/// x and weight of linear f32, f16 and bf16 in rows of channels, as RepackedSizes says.
struct Repacked {
  DType dtype;
  RepackJob x;
  RepackJob weight;

  [[nodiscard]] static Repacked of(const ConvolutionPlan& plan, const Problem& problem, const Buffers& buffers);
  [[nodiscard]] Status run(const CudaContext& context) const;
};

/// Both in one launch; `back`: to linear tensors.
[[nodiscard]] Status run_repack(DType dtype, bool back, const RepackJob& first, const RepackJob& second,
                                const CudaContext& context);

}  // namespace graft::ops
