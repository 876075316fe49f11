// Infers the ranges of a model's inputs from its first layers.
#pragma once

#include "graft/report/verify.hpp"
#include "onnx/model.hpp"

namespace graft::verify {

using report::InputRange;
using report::InputRanges;

/// Returns the ranges of the inputs for which the first layers of the model show it, after casts and nodes that only
/// move data:
/// - 0 to 255 for images: the input is divided by 255, 127.5 or a similar number, means of about half of that are
/// subtracted, or the input is cast to 8 bits;
/// - 0 to 1 for inputs that are multiplied by 255;
/// - the range of the scale for inputs that are rounded to 8 bits with one scale;
/// - all rows for integers that index a table, also after a constant was added, and 0 to depth - 1 for those of OneHot;
/// - one more on both sides of the constants for integers that are compared with, or clipped to, constants beyond 0 to
/// 2.
/// Other inputs are not in the result.
[[nodiscard]] InputRanges infer_input_ranges(const onnx::Model& model);

}  // namespace graft::verify
