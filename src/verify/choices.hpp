// Indices of the largest: whether another one is as good where the candidate has a narrower type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onnx/model.hpp"
#include "onnx/tensor_data.hpp"
#include "runtime/engine.hpp"
#include "verify/compare.hpp"

namespace graft::verify {

/// Indices that an ArgMax, an ArgMin or a TopK of the main graph gives, perhaps in another shape.
struct IndexChoice {
  const onnx::Value* scores;  ///< What it is chosen from.
  std::int64_t axis;
};

[[nodiscard]] std::optional<IndexChoice> choice_of(const onnx::Value& value);

/// A choice that two models may make differently.
struct JudgedChoice {
  IndexChoice choice;
  double share;  ///< Of the largest score of a row: what each of both models may be off by.

  /// The reference's scores: one of its inputs, or a tensor that it computes.
  [[nodiscard]] const onnx::TensorData& scores(const runtime::TensorMap& inputs,
                                               const runtime::TensorMap& computed) const;
};

/// Of a value of the reference whose scores only one of both models rounds to a narrower type; nothing for others. The
/// types are those that rounding_type gives for the scores in the reference and for the indices in the candidate.
[[nodiscard]] std::optional<JudgedChoice> judged_choice(const onnx::Model& reference, const onnx::Value& value,
                                                        const NarrowTypes& reference_narrow,
                                                        const NarrowTypes& candidate_narrow,
                                                        const onnx::Value& candidate_value, bool quantized);

/// Judges the indices that differ by the reference's scores at both of them: two scores that are each off by `share` of
/// the largest of their row may change places. Moves those from `difference`'s mismatches to what is within noise.
/// Returns "the scores chosen instead are up to 0.02 from the best in the reference, 0.5 % of the largest; allowed is
/// 3.1 %", or nothing where dimensions or an index do not fit the scores.
[[nodiscard]] std::optional<std::string> judge_choice(const JudgedChoice& judged, const onnx::TensorData& scores,
                                                      const onnx::TensorData& reference,
                                                      const onnx::TensorData& candidate, Difference& difference);

}  // namespace graft::verify
