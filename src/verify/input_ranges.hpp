// The numbers that a model's inputs have in use, where its first layers show it.
#pragma once

#include <map>
#include <string>

#include "onnx/model.hpp"

namespace graft::verify {

struct InputRange {
  double lowest = 0;
  double highest = 0;
  std::string why;  ///< "node 'scale' (Div) divides it by 255"; empty where it was given.
};

using InputRanges = std::map<std::string, InputRange, std::less<>>;

/// Inputs that are images of 0 to 255: after casts and movements alone they are divided by 255, 127.5 or the like,
/// means of about that half are subtracted, or they are cast to 8 bits. And those of 0 to 1, which are multiplied by
/// 255. And those that are rounded to 8 bits with one scale, which holds the range. And integers that are the indices
/// of a table, also after a constant was added, from its first row to its last, or that OneHot expands to a depth; and
/// those that are compared with constants beyond 0 to 2, or clipped to these, to one more on both sides. Others are not
/// in it.
[[nodiscard]] InputRanges infer_input_ranges(const onnx::Model& model);

}  // namespace graft::verify
