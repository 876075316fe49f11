// Bilinear samples of an image at the points of a grid, with zeros outside, computed by GridSample or by gathers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onnx/model.hpp"
#include "ops/multi_scale_deformable_attention/fusion/axis_layout.hpp"

namespace graft::passes::deformable_attention {

struct GridSampling {
  /// The reason why the samples are not bilinear with zeros outside and without aligned corners; empty if they are.
  std::string obstacle;
  onnx::Value* image = nullptr;  ///< The image, [N,C,H,W] or [N,C,H*W].
  std::int64_t height = 0;
  std::int64_t width = 0;
  onnx::Value* grid = nullptr;  ///< The grid, [N,Q,P,2].
  double scale = 1;  ///< The coordinate from -1 to 1 is scale * g + offset, where g is an element of the grid.
  double offset = 0;
  AxisLayout layout{{}, {}};  ///< The layout of the samples in terms of item, channel, query and point.
};

/// Returns the sampling whose result `node` computes: a GridSample, or a sum of gathered pixels whose positions are
/// computed from a grid. Returns nothing if the node is neither.
[[nodiscard]] std::optional<GridSampling> read_grid_sampling(const onnx::Node& node);

}  // namespace graft::passes::deformable_attention
