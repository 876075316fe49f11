// Very long networks are compiled in parts: OpenVINO's time grows faster than the square of their length.
#pragma once

#include <cstddef>
#include <memory>
#include <openvino/core/model.hpp>
#include <optional>
#include <vector>

namespace graft::runtime {

/// A part of a model, to run after the parts before it.
struct Segment {
  std::shared_ptr<ov::Model> model;
  /// The model's parameter for each of this part's; nothing for the last output of the part before.
  std::vector<std::optional<std::size_t>> inputs;
  std::vector<std::size_t> outputs;  ///< The model's result for each of this part's; the next part's input follows.
};

/// A model of more than 2,000 operations in parts of 400 or more, a shorter one as it is. It is cut only where a single
/// tensor connects both sides, an f32 one that Relu, Sigmoid or Tanh computes: no transformation of OpenVINO's that
/// changes how numbers round reaches over such a place, so each result stays what it is to the last bit.
[[nodiscard]] std::vector<Segment> cut_into_segments(const std::shared_ptr<ov::Model>& model);

}  // namespace graft::runtime
