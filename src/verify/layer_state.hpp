// What the steps of compare_layers share: both models, the pairs of their tensors, and the report that they fill.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/extract.hpp"
#include "verify/choices.hpp"
#include "verify/ends.hpp"
#include "verify/layers.hpp"
#include "verify/partial_runs.hpp"
#include "verify/pieces.hpp"

namespace graft::verify {

/// The candidate does not run; the reference's own failures go to the caller.
struct CandidateFails {
  std::string message;
};

/// One pair of tensors; the layer of the same index in the report is about it.
struct LayerRow {
  TensorMatch match;
  onnx::GraphRegion reference_region;
  onnx::GraphRegion candidate_region;
  std::optional<JudgedChoice> choice{};  ///< Where it is an index, and its scores say whether another one is as good.
  bool has_other_dims = false;
  bool is_arranged = false;        ///< The candidate may have it in another order, and was compared in that.
  std::int64_t reference_nan = 0;  ///< In the latest run.
  std::int64_t candidate_nan = 0;
};

struct LayerState {
  const LayerOptions& options;
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
  bool inputs_are_exchanged = false;  ///< The channels of one are in another place in the candidate.
  std::vector<LayerRow> rows{};
  std::unordered_map<const onnx::Value*, std::size_t> rows_by_candidate{};
  LayerReport report{};

  LayerState(const runtime::Engine& engine, const onnx::Model& reference_model, const onnx::Model& candidate_model,
             const LayerOptions& given, Scales int8_scales);

  [[nodiscard]] runtime::TensorMap for_candidate(const runtime::TensorMap& fed) const {
    return inputs_for(inputs, fed);
  }
  void tell(const std::string& what, std::size_t done, std::size_t total) const;
  /// Where none is given; and for telling orders apart, of which many are within a wide tolerance.
  [[nodiscard]] Tolerance usual_tolerance(const LayerRow& row, onnx::ElementType left, onnx::ElementType right) const;
  [[nodiscard]] bool may_have_floor(const Tolerance& tolerance) const;
  /// Whether it is an index whose scores can be looked at.
  [[nodiscard]] bool may_judge_choice(const LayerRow& row) const;
};

/// Pairs the tensors of both models, by a first run of each. Throws CandidateFails.
void pair_layers(LayerState& state, const runtime::TensorMap& inputs, const runtime::TensorMap& renamed,
                 bool trust_names);
/// Compares all pairs in one run. Throws CandidateFails.
void compare_pairs(LayerState& state, std::size_t run, const runtime::TensorMap& inputs,
                   const runtime::TensorMap& renamed);
/// How much of the signal each layer loses.
void measure_losses(LayerState& state);
/// The first layer with NaN of inputs that have none.
void find_nan(LayerState& state, const runtime::TensorMap& inputs);
/// The first tensor that is wrong though what it is made of is right.
void find_divergence(LayerState& state, const runtime::TensorMap& inputs);

}  // namespace graft::verify
