// Copies linear tensors to layouts in which the channels of a pixel are contiguous, and back: hwc8 for 16-bit types,
// chw32 for i8. f32 is copied in one direction only, rounded to TF32, to pixels of whole 16-byte chunks.
#pragma once

#include "graft/operator/tensor.hpp"
#include "ops/convolution/plan.hpp"

namespace graft::ops {

/// A copy between images x channels x pixels (linear) and images x (planes x) pixels x channels (a vector layout).
struct RepackJob {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t plane_stride = 0;  ///< The number of elements that one plane of channels takes in chw32.
  std::int64_t image_stride = 0;  ///< The number of elements that an image takes in the vector layout.
  int pixel_stride = 0;           ///< The number of elements that a pixel takes in the vector layout.
  int channels = 0;
  int stored_channels = 0;
  int pixels = 0;
  int vector = 1;
  int pixel_tiles = 0;
  int channel_tiles = 0;
  std::int64_t blocks = 0;

  /// Returns a job with the sizes and strides for a tensor of these extents, which begins at `linear` in the linear
  /// layout. The caller then sets the source `from` and the target `to`, one of which is the linear tensor and the
  /// other its copy in the vector layout.
  [[nodiscard]] static RepackJob of(DType dtype, const Extents& extents, const void* linear);
};

/// The copies of linear x and weight (f32, f16 or bf16) in rows of channels. RepackedSizes contains their sizes.
struct Repacked {
  DType dtype;
  RepackJob x;
  RepackJob weight;

  [[nodiscard]] static Repacked of(const ConvolutionPlan& plan, const Problem& problem, const Buffers& buffers);
  [[nodiscard]] Status run(const CudaContext& context) const;
};

/// Runs both copy jobs in one launch. If `back` is true, they copy from the vector layout to the linear layout,
/// otherwise the reverse.
[[nodiscard]] Status run_repack(DType dtype, bool back, const RepackJob& first, const RepackJob& second,
                                const CudaContext& context);

}  // namespace graft::ops
