// Bilinear samples of an image at the points of a grid, with zeros outside: by GridSample, or by gathers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onnx/model.hpp"
#include "ops/multi_scale_deformable_attention/fusion/axis_layout.hpp"

namespace graft::passes::deformable_attention {

struct GridSampling {
  std::string obstacle;          ///< Empty where the samples are bilinear, zeros outside, corners not aligned.
  onnx::Value* image = nullptr;  ///< [N,C,H,W], or [N,C,H*W].
  std::int64_t height = 0;
  std::int64_t width = 0;
  onnx::Value* grid = nullptr;  ///< [N,Q,P,2]
  double scale = 1;             ///< A coordinate from -1 to 1 is scale * x + offset of one of the grid.
  double offset = 0;
  AxisLayout layout{{}, {}};  ///< Of the samples, in item, channel, query and point.
};

/// What a node samples that is a GridSample, or a sum of gathered pixels whose places come from a grid. Nothing where
/// it is neither.
[[nodiscard]] std::optional<GridSampling> read_grid_sampling(const onnx::Node& node);

}  // namespace graft::passes::deformable_attention
