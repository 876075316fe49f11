// What nodes compute from one tensor as formulas over the channels' statistics, and which of it is an instance
// normalization.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "onnx/matcher.hpp"
#include "onnx/model.hpp"
#include "ops/instance_norm/fusion/channel_algebra.hpp"

namespace graft::passes::instance_norm {

[[nodiscard]] bool is_real(const onnx::Value& value);

/// The axes that a node averages or sums over, from the front; nothing where it does neither or they are not constant.
[[nodiscard]] std::optional<std::vector<std::size_t>> averaged_axes(const onnx::Node& node);

/// A value that is (x - mean) / deviation * scale + bias.
struct NormalizedValue {
  onnx::Value* y = nullptr;
  std::size_t channel_axis = 1;
  PerChannel scale;
  PerChannel bias;
};

/// What was found in following a tensor.
struct FollowedTensor {
  std::vector<NormalizedValue> normalized;  ///< The last one first.
  double epsilon = 0;                       ///< The one in all of them.
  std::optional<onnx::NearMiss> near_miss;  ///< Where it came furthest; nothing unless there was a variance.
};

/// Follows what `nodes`, in topological order, compute from x, along one axis of which the channels lie.
[[nodiscard]] FollowedTensor follow_channels(const onnx::Value& x, std::size_t channel_axis,
                                             const std::vector<onnx::Node*>& nodes);

}  // namespace graft::passes::instance_norm
