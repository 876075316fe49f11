// Attributes of every type, each with its allowed values.
#pragma once

#include "graft/operator/define_operator.hpp"

namespace my {

enum class ResampleMode : std::uint8_t { nearest, linear };
constexpr std::array<graft::Choice<ResampleMode>, 2> choices(ResampleMode /*tag*/) {
  return {{{"nearest", ResampleMode::nearest}, {"linear", ResampleMode::linear}}};
}

struct ResampleAttributes {
  float cutoff = 0.5F;
  float gain = 1;
  float offset = 0;
  std::int64_t taps = 8;
  bool align_corners = false;
  ResampleMode mode = ResampleMode::linear;
  std::vector<float> scales;
  std::vector<std::int64_t> axes;

  static constexpr auto attributes() {
    using Self = ResampleAttributes;
    return std::tuple{
        graft::attribute("cutoff", &Self::cutoff, "a part of the sampling rate",
                         graft::Range{.lowest = 0, .highest = 1}),
        graft::attribute("gain", &Self::gain, "of the filter", graft::positive_and_finite()),
        graft::attribute("offset", &Self::offset, "added to each value"),
        graft::attribute("taps", &Self::taps, "length of the filter", graft::at_least(1)),
        graft::attribute("align_corners", &Self::align_corners, "the outermost values stay where they are"),
        graft::attribute("mode", &Self::mode, "between two values"),
        graft::required_attribute("scales", &Self::scales, "one for each axis", graft::positive_and_finite()),
        graft::attribute("axes", &Self::axes, "empty: all", graft::at_least(0))};
  }
};

}  // namespace my
