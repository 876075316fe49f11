// Splits very long networks into parts, because OpenVINO's compilation time grows faster than the square of their
// length.
#pragma once

#include <cstddef>
#include <memory>
#include <openvino/core/model.hpp>
#include <optional>
#include <vector>

namespace graft::runtime {

/// A consecutive part of a model, as cut_into_segments returns it. It runs after the earlier parts.
struct Segment {
  std::shared_ptr<ov::Model> model;
  /// For each parameter of this part, the index of the same parameter in the whole model; empty for the parameter that
  /// receives the last output of the previous part.
  std::vector<std::optional<std::size_t>> inputs;
  /// For each result of this part, the index of the same result in the whole model. One more result follows: the tensor
  /// that the next part reads.
  std::vector<std::size_t> outputs;
};

/// Returns the parts of a model, in the order in which they run. A model of more than 2,000 operations is split into
/// parts of 400 or more operations; a shorter model is returned as a single part. A cut lies only where a single f32
/// tensor, computed by Relu, Sigmoid or Tanh, connects both sides. No transformation of OpenVINO that changes rounding
/// matches across such a tensor, so that each result stays bitwise the same.
[[nodiscard]] std::vector<Segment> cut_into_segments(const std::shared_ptr<ov::Model>& model);

}  // namespace graft::runtime
