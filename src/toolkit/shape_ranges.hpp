// Writes ranges of shapes as arguments of the engine driver.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "graft/toolkit/build.hpp"

namespace graft::toolkit {

/// Returns "image=1x3x8x8..8x3x8x8..64x3x8x8".
[[nodiscard]] inline std::string text_of(const ShapeRanges::value_type& shape) {
  const auto& [name, range] = shape;
  return fmt::format("{}={}..{}..{}", name, fmt::join(range.smallest, "x"), fmt::join(range.usual, "x"),
                     fmt::join(range.largest, "x"));
}

}  // namespace graft::toolkit
