// The values that nodes compute from one tensor, as formulas over the statistics of its channels, and the values among
// them that are instance normalizations.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "onnx/matcher.hpp"
#include "onnx/model.hpp"
#include "ops/instance_norm/fusion/channel_algebra.hpp"

namespace graft::passes::instance_norm {

[[nodiscard]] bool is_real(const onnx::Value& value);

/// Returns the sorted axes, counted from the front, that a node averages or sums over, or nothing if the node does
/// neither or its axes are not constant.
[[nodiscard]] std::optional<std::vector<std::size_t>> averaged_axes(const onnx::Node& node);

/// A value that is (x - mean) / deviation * scale + bias.
struct NormalizedValue {
  onnx::Value* y = nullptr;
  std::size_t channel_axis = 1;
  PerChannel scale;
  PerChannel bias;
};

/// The values that are computed from one tensor by normalizing its channels.
struct FollowedTensor {
  std::vector<NormalizedValue> normalized;  ///< The values that are normalized, the last one first.
  double epsilon = 0;                       ///< The common epsilon of all normalized values.
  /// The node at which the search stopped and the reason, for the path on which it followed the most nodes. Not set
  /// unless a variance was computed.
  std::optional<onnx::NearMiss> near_miss;
};

/// Returns the normalized values that `nodes`, in topological order, compute from x, whose channels lie along
/// channel_axis.
[[nodiscard]] FollowedTensor follow_channels(const onnx::Value& x, std::size_t channel_axis,
                                             const std::vector<onnx::Node*>& nodes);

}  // namespace graft::passes::instance_norm
