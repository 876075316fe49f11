// Indices of the largest: whether another one is as good where the candidate has a narrower type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graph/model.hpp"
#include "graph/tensor_data.hpp"
#include "verify/compare.hpp"

namespace graft {

/// Indices that an ArgMax, an ArgMin or a TopK of the main graph gives, perhaps in another shape.
struct IndexChoice {
  const Value* scores;  ///< What it is chosen from.
  std::int64_t axis;
};

[[nodiscard]] std::optional<IndexChoice> choice_of(const Value& value);

/// Judges the indices that differ by the reference's scores at both of them: two scores that are each off by `share` of
/// the largest of their row may change places. Moves those from `difference`'s mismatches to what is within noise.
/// Returns "the scores chosen instead are up to 0.02 from the best in the reference, 0.5 % of the largest; allowed is
/// 3.1 %", or nothing where dimensions or an index do not fit the scores.
[[nodiscard]] std::optional<std::string> judge_choice(const IndexChoice& choice, const TensorData& scores,
                                                      const TensorData& reference, const TensorData& candidate,
                                                      double share, Difference& difference);

}  // namespace graft
