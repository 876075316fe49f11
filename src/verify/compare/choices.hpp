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

/// An ArgMax, ArgMin or TopK of the main graph that computes indices: the tensor of scores and the axis along which
/// they select.
struct IndexChoice {
  const onnx::Value* scores;  ///< The tensor from which the indices are chosen.
  std::int64_t axis;
};

/// Returns the ArgMax, ArgMin or TopK that computes the indices in `value`, also if the indices are reshaped
/// afterwards. Returns nothing if the value does not contain such indices.
[[nodiscard]] std::optional<IndexChoice> choice_of(const onnx::Value& value);

/// A tensor of indices that may differ between two models because the scores are rounded differently.
struct JudgedChoice {
  IndexChoice choice;
  /// The allowed error of each score in each model, as a fraction of the largest score of its row.
  double share;

  /// Returns the tensor of scores of the reference, from `inputs` if it is an input of the model, otherwise from
  /// `computed`. Both maps are keyed by tensor name and must contain it.
  [[nodiscard]] const onnx::TensorData& scores(const runtime::TensorMap& inputs,
                                               const runtime::TensorMap& computed) const;
};

/// Returns the ArgMax, ArgMin or TopK that computes the indices in `value` of the reference, with the allowed error of
/// its scores. Returns nothing if the value does not contain indices, or if both models compute in equally wide types
/// and `quantized` (the candidate is quantized) is false. The types are those of rounding_type() for the scores in the
/// reference and for the indices in the candidate.
[[nodiscard]] std::optional<JudgedChoice> judged_choice(const onnx::Model& reference, const onnx::Value& value,
                                                        const NarrowTypes& reference_narrow,
                                                        const NarrowTypes& candidate_narrow,
                                                        const onnx::Value& candidate_value, bool quantized);

/// Judges the indices that differ between `reference` and `candidate` by the reference's `scores` at both indices. A
/// difference is allowed if both scores differ by no more than rounding errors of `share` times the largest score of
/// the row explain; it is then moved from `difference.mismatched` to `within_noise`. Returns a text with the largest
/// and the allowed gap ("indices: at the candidate's indices, the reference's scores differ by up to 0.02 from the
/// best, 0.5 % of the largest score of the row; allowed is 3.1 %"). Returns nothing, and changes nothing, if the
/// dimensions or an index do not fit the scores.
[[nodiscard]] std::optional<std::string> judge_choice(const JudgedChoice& judged, const onnx::TensorData& scores,
                                                      const onnx::TensorData& reference,
                                                      const onnx::TensorData& candidate, Difference& difference);

}  // namespace graft::verify
