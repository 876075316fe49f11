// The sizes of a problem of DeformableConvolution, and the layout of its inputs for the kernels that compute tiles.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/workspace_parts.hpp"
#include "graft/operator/elementwise.hpp"
#include "ops/deformable_convolution/deformable_convolution.hpp"

namespace graft::ops {

/// The sizes of one of the two axes of an image.
struct DeformableAxis {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t pad = 0;  ///< Zeros before the first element; the zeros after the last one follow from `out`.
  std::int64_t dilation = 1;
};

/// The sizes of a problem that DeformableConvolution::check() accepts.
struct DeformableSizes {
  DeformableSizes(const DeformableConvolution& op, const Problem& problem);

  [[nodiscard]] GRAFT_HOST_DEVICE std::int64_t in_pixels() const { return rows.in * columns.in; }
  [[nodiscard]] GRAFT_HOST_DEVICE std::int64_t out_pixels() const { return rows.out * columns.out; }
  [[nodiscard]] GRAFT_HOST_DEVICE std::int64_t taps() const { return rows.kernel * columns.kernel; }
  [[nodiscard]] GRAFT_HOST_DEVICE std::int64_t group_channels() const { return channels / groups; }
  [[nodiscard]] GRAFT_HOST_DEVICE std::int64_t group_outputs() const { return outputs / groups; }

  std::int64_t items;
  std::int64_t channels;
  std::int64_t outputs;
  std::int64_t groups;
  std::int64_t offset_groups;
  DeformableAxis rows;
  DeformableAxis columns;
  bool has_bias;
  bool has_mask;
};

/// The bytes of a step for one filter, and for one pixel of y.
inline constexpr int deformable_step_bytes = 128;

/// Sections are the sets of channels that have group and offset group in common. In the workspace x is
/// N,H,W,section,channel, each section padded with zeros to whole vectors of 16 bytes. The filters are in the order in
/// which sums are computed: step by step, where a step covers `step_channels` channels of one section at one element of
/// the window.
struct DeformableSections : WorkspaceParts {
  DeformableSections(const DeformableSizes& sizes, DType dtype);

  /// Whether one number of groups divides the other; otherwise sections would differ in size.
  [[nodiscard]] static bool exist(const DeformableSizes& sizes) {
    return std::max(sizes.groups, sizes.offset_groups) % std::min(sizes.groups, sizes.offset_groups) == 0;
  }

  std::int64_t count;            ///< All sections.
  std::int64_t of_group;         ///< Sections of a group.
  std::int64_t channels;         ///< Channels of a section.
  std::int64_t stored_channels;  ///< Channels of a section, including padding.
  std::int64_t step_channels;
  std::int64_t chunks;  ///< Steps for one element of the window of one section.
  std::int64_t steps;   ///< Steps of a sum.
  std::int64_t x_at;
  std::int64_t weight_at;
};

}  // namespace graft::ops
