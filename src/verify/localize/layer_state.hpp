// The state that the steps of compare_layers share: both models, the pairs of their tensors, and the report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/extract.hpp"
#include "verify/compare/choices.hpp"
#include "verify/compare/ends.hpp"
#include "verify/compare/match_tensors.hpp"
#include "verify/compare/pieces.hpp"
#include "verify/compare/rearrangement.hpp"
#include "verify/judge/noise_floor.hpp"
#include "verify/localize/layers.hpp"
#include "verify/localize/partial_runs.hpp"

namespace graft::verify {

/// Thrown if the candidate does not run, with the engine's message. Errors of the reference are not converted to it.
struct CandidateFails {
  std::string message;
};

/// A pair of tensors and the nodes that compute each of them from other paired tensors. LayerReport::layers has the
/// result of the comparison at the same index.
struct LayerRow {
  TensorMatch match;
  onnx::GraphRegion reference_region;
  onnx::GraphRegion candidate_region;
  std::optional<JudgedChoice> choice{};  ///< Set if the tensor holds indices that are judged by their scores.
  bool has_other_dims = false;
  /// Whether the tensor may have another order of elements in the candidate, and the reference's elements were brought
  /// to that order before the comparison.
  bool is_arranged = false;
  std::int64_t reference_nan = 0;  ///< The number of NaN in the most recent run.
  std::int64_t candidate_nan = 0;
};

/// The data that the steps of compare_layers share: both models, the pairs of their tensors (LayerRow), and the report.
struct LayerState {
  const VerifyOptions& options;
  std::optional<Precision> emulated;
  Scales scales;
  PartialRuns reference;
  PartialRuns candidate;
  TensorMatcher matcher;
  bool quantized;
  Refusals refused_by_reference{};
  Refusals refused_by_candidate{};
  NarrowTypes reference_narrow{};
  NarrowTypes candidate_narrow{};
  std::vector<IoPair> inputs{};
  bool inputs_are_exchanged = false;  ///< Whether an input has its channel axis at another position in the candidate.
  std::vector<LayerRow> rows{};
  std::unordered_map<const onnx::Value*, std::size_t> rows_by_candidate{};
  LayerReport report{};

  LayerState(const runtime::Engine& engine, const onnx::Model& reference_model, const onnx::Model& candidate_model,
             const VerifyOptions& given, std::optional<Precision> emulated_type, Scales int8_scales);

  [[nodiscard]] runtime::TensorMap for_candidate(const runtime::TensorMap& fed) const {
    return inputs_for(inputs, fed);
  }
  void tell(const std::string& what, std::size_t done, std::size_t total) const;
  /// Returns the default tolerance of a row if its tensor has the type `left` in the reference and `right` in the
  /// candidate. It is also used to distinguish orders of elements if the caller set a tolerance, because many orders
  /// would be within a wide one.
  [[nodiscard]] Tolerance usual_tolerance(const LayerRow& row, onnx::ElementType left, onnx::ElementType right) const;
  [[nodiscard]] bool may_have_floor(const Tolerance& tolerance) const;
  /// Returns whether the tensor of a row contains indices that can be judged by their scores, because the engine can
  /// return the scores.
  [[nodiscard]] bool may_judge_choice(const LayerRow& row) const;
};

/// Runs each model once and fills state.rows with the pairs of tensors. `renamed` are the inputs under the candidate's
/// names. Throws CandidateFails if the candidate does not run.
void pair_layers(LayerState& state, const runtime::TensorMap& inputs, const runtime::TensorMap& renamed,
                 bool trust_names);
/// Compares all pairs in run number `run` and stores the results in state.report. Throws CandidateFails if the
/// candidate does not run.
void compare_pairs(LayerState& state, std::size_t run, const runtime::TensorMap& inputs,
                   const runtime::TensorMap& renamed);
/// Stores in state.report how much accuracy each layer loses: the signal-to-noise ratio of its inputs minus that of its
/// output.
void measure_losses(LayerState& state);
/// Stores in state.report the first layer that computes NaN from inputs without NaN, if there is one.
void find_nan(LayerState& state, const runtime::TensorMap& inputs);
/// Stores in state.report the first tensor that is wrong although the tensors from which it is computed are correct, if
/// there is one.
void find_divergence(LayerState& state, const runtime::TensorMap& inputs);

}  // namespace graft::verify
