// Checks the range of sizes that a user gives for an input.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::inspect {

/// The sizes of an input: the minimum, the optimum and the maximum.
using RangeOfSizes = std::array<std::vector<std::int64_t>, 3>;

/// Throws Error if the minimum, optimum and maximum are not in order, or if no tensor of the input's shape has these
/// sizes. The numbers for an integer input of rank 0 or 1 may be its values, so they are not compared with its shape.
/// `option` is the text that the user wrote.
void check_range(const std::string& option, const onnx::Value& input, const RangeOfSizes& range);

}  // namespace graft::inspect
