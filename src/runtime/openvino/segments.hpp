// Splits very long networks into parts, because OpenVINO's compilation time grows faster than the square of their
// length.
#pragma once

#include <cstddef>
#include <memory>
#include <openvino/core/model.hpp>
#include <optional>
#include <vector>

namespace graft::runtime {

/// A part of a model, which runs after the earlier parts.
struct Segment {
  std::shared_ptr<ov::Model> model;
  /// For each parameter of this part, the index of the model's parameter; empty for the parameter that is the last
  /// output of the previous part.
  std::vector<std::optional<std::size_t>> inputs;
  /// For each result of this part, the index of the model's result. The input of the next part follows as one more
  /// result.
  std::vector<std::size_t> outputs;
};

/// Returns the parts of a model. A model of more than 2,000 operations is split into parts of 400 or more; a shorter
/// one is returned whole. Cuts lie only where a single tensor connects both sides, in f32 and computed by Relu, Sigmoid
/// or Tanh: no transformation of OpenVINO that changes rounding matches across such a place, so that each result stays
/// bitwise the same.
[[nodiscard]] std::vector<Segment> cut_into_segments(const std::shared_ptr<ov::Model>& model);

}  // namespace graft::runtime
