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

/// Thrown if the candidate does not run. Errors of the reference are not caught.
struct CandidateFails {
  std::string message;
};

/// A pair of tensors. LayerReport::layers has its report at the same index.
struct LayerRow {
  TensorMatch match;
  onnx::GraphRegion reference_region;
  onnx::GraphRegion candidate_region;
  std::optional<JudgedChoice> choice{};  ///< Set if the tensor holds indices that are judged by their scores.
  bool has_other_dims = false;
  /// Whether the tensor may have another order in the candidate and was compared in that order.
  bool is_arranged = false;
  std::int64_t reference_nan = 0;  ///< The number of NaN in the most recent run.
  std::int64_t candidate_nan = 0;
};

/// The shared state; see the top of this file.
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
  /// Returns the default tolerance, which applies if the caller set none. It also serves to distinguish orders, because
  /// many orders would be within a wide tolerance.
  [[nodiscard]] Tolerance usual_tolerance(const LayerRow& row, onnx::ElementType left, onnx::ElementType right) const;
  [[nodiscard]] bool may_have_floor(const Tolerance& tolerance) const;
  /// Returns whether the row holds indices whose scores the engine can return.
  [[nodiscard]] bool may_judge_choice(const LayerRow& row) const;
};

/// Pairs the tensors of both models after a first run of each. Throws CandidateFails if the candidate does not run.
void pair_layers(LayerState& state, const runtime::TensorMap& inputs, const runtime::TensorMap& renamed,
                 bool trust_names);
/// Compares all pairs in one run. Throws CandidateFails if the candidate does not run.
void compare_pairs(LayerState& state, std::size_t run, const runtime::TensorMap& inputs,
                   const runtime::TensorMap& renamed);
/// Computes how much of the signal each layer loses.
void measure_losses(LayerState& state);
/// Finds the first layer that computes NaN from inputs without NaN.
void find_nan(LayerState& state, const runtime::TensorMap& inputs);
/// Finds the first tensor that is wrong although the tensors from which it is computed are correct.
void find_divergence(LayerState& state, const runtime::TensorMap& inputs);

}  // namespace graft::verify
