// The shapes for which an engine is built, as Python passes them: the smallest, the usual and the largest of each
// input.
#pragma once

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "graft/toolkit/build.hpp"

namespace graft::python {

using Sizes = std::vector<std::int64_t>;
using PyShapeRanges = std::map<std::string, std::tuple<Sizes, Sizes, Sizes>>;

[[nodiscard]] inline toolkit::ShapeRanges ranges_of(const PyShapeRanges& shapes) {
  toolkit::ShapeRanges ranges;
  for (const auto& [input, range] : shapes) {
    const auto& [smallest, usual, largest] = range;
    ranges.emplace(input, toolkit::ShapeRange{.smallest = smallest, .usual = usual, .largest = largest});
  }
  return ranges;
}

}  // namespace graft::python
