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
  /// The number of zeros before the first element; the number after the last one follows from `out`.
  std::int64_t pad = 0;
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

/// The number of bytes in a step for one filter, and for one pixel of y.
inline constexpr int deformable_step_bytes = 128;

/// The division of the channels into sections, sets of channels that have the same group and offset group. In the
/// workspace x is stored as N,H,W,section,channel, each section padded with zeros to whole vectors of 16 bytes. The
/// filters are stored in the order in which sums are computed: step by step, where a step covers `step_channels`
/// channels of one section at one element of the window.
struct DeformableSections : WorkspaceParts {
  DeformableSections(const DeformableSizes& sizes, DType dtype);

  /// Returns whether the number of groups divides the number of offset groups or the reverse. Otherwise sections would
  /// differ in size.
  [[nodiscard]] static bool exist(const DeformableSizes& sizes) {
    return std::max(sizes.groups, sizes.offset_groups) % std::min(sizes.groups, sizes.offset_groups) == 0;
  }

  std::int64_t count;            ///< The number of all sections.
  std::int64_t of_group;         ///< The number of sections in a group.
  std::int64_t channels;         ///< The number of channels in a section.
  std::int64_t stored_channels;  ///< The number of channels in a section, including padding.
  std::int64_t step_channels;
  std::int64_t chunks;  ///< The number of steps for one element of the window in one section.
  std::int64_t steps;   ///< The number of steps in a sum.
  std::int64_t x_at;
  std::int64_t weight_at;
};

}  // namespace graft::ops
