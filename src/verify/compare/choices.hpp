// Judges the indices of largest scores: if the candidate has a narrower type, a different index may be equally good.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onnx/model.hpp"
#include "onnx/tensor_data.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/compare.hpp"

namespace graft::verify {

/// Indices that an ArgMax, ArgMin or TopK of the main graph computes, possibly in another shape.
struct IndexChoice {
  const onnx::Value* scores;  ///< The tensor from which the indices are chosen.
  std::int64_t axis;
};

/// Returns the choice that computed a value, or nothing if the value is not an index.
[[nodiscard]] std::optional<IndexChoice> choice_of(const onnx::Value& value);

/// A choice whose result may differ between two models.
struct JudgedChoice {
  IndexChoice choice;
  /// The error that is allowed for a score of each model, as a fraction of the largest score of the row.
  double share;

  /// Returns the reference's scores, which are one of its inputs or a tensor that it computes.
  [[nodiscard]] const onnx::TensorData& scores(const runtime::TensorMap& inputs,
                                               const runtime::TensorMap& computed) const;
};

/// Returns the choice that computes a value of the reference, if one of the two models rounds to a narrower type than
/// the other or is quantized; nothing for other values. The types are those that rounding_type returns for the scores
/// in the reference and for the indices in the candidate.
[[nodiscard]] std::optional<JudgedChoice> judged_choice(const onnx::Model& reference, const onnx::Value& value,
                                                        const NarrowTypes& reference_narrow,
                                                        const NarrowTypes& candidate_narrow,
                                                        const onnx::Value& candidate_value, bool quantized);

/// Judges the indices that differ by the reference's scores at both of them: two scores that are each off by `share` of
/// the largest of their row may change places. Moves these elements from `difference.mismatched` to `within_noise`.
/// Returns a text with the largest gap and the allowed gap ("indices: at the candidate's indices, the reference's
/// scores differ by up to 0.02 from the best, 0.5 % of the largest score of the row; allowed is 3.1 %"), or nothing if
/// dimensions or an index do not fit the scores.
[[nodiscard]] std::optional<std::string> judge_choice(const JudgedChoice& judged, const onnx::TensorData& scores,
                                                      const onnx::TensorData& reference,
                                                      const onnx::TensorData& candidate, Difference& difference);

}  // namespace graft::verify
