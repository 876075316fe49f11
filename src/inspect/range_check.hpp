// Checks the range of sizes that a user gives for an input.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::inspect {

/// The minimum, optimum and maximum sizes of an input, in this order.
using RangeOfSizes = std::array<std::vector<std::int64_t>, 3>;

/// Throws Error if the minimum, optimum and maximum are not in ascending order, or if the input's declared shape does
/// not allow them. For an integer input of rank 0 or 1 the numbers may be elements instead of sizes, so they are not
/// compared with its shape. `option` is the text that the user wrote, for the message.
void check_range(const std::string& option, const onnx::Value& input, const RangeOfSizes& range);

}  // namespace graft::inspect
