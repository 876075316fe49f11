// Compares the pairs of tensors of both models, in groups that fit into memory, and recognizes common errors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "onnx/schema.hpp"
#include "verify/localize/layer_state.hpp"

namespace graft::verify {
namespace {

/// Adds to `shapes` the fixed shapes that a value had before the nodes that only reshape or transpose it, up to the
/// first shape that is not fixed.
void collect_shapes(const onnx::Value* value, std::vector<std::vector<std::int64_t>>& shapes) {
  while (value->producer != nullptr && has_trait(*value->producer, onnx::trait::rearranges)) {
    value = value->producer->input(0);
    if (value == nullptr || !value->shape) return;
    std::vector<std::int64_t> dims;
    for (const Dim& dim : *value->shape) {
      if (!dim.is_constant()) return;
      dims.push_back(dim.value());
    }
    if (std::find(shapes.begin(), shapes.end(), dims) == shapes.end()) shapes.push_back(std::move(dims));
  }
}

class PairComparison {
 public:
  explicit PairComparison(LayerState& state) : state_(state) {}

  void run(std::size_t run, const runtime::TensorMap& inputs, const runtime::TensorMap& renamed) {
    std::size_t next = 0;
    while (next < state_.rows.size()) {
      state_.tell("comparing tensors", next, state_.rows.size());
      const std::size_t begin = next;
      std::int64_t bytes = 0;
      std::vector<const onnx::Value*> left;
      std::vector<const onnx::Value*> right;
      const auto size = [&](const LayerRow& row) {
        return state_.reference.bytes_of(*row.match.reference) + state_.candidate.bytes_of(*row.match.candidate);
      };
      while (next < state_.rows.size() && (left.empty() || bytes + size(state_.rows[next]) <= state_.options.memory)) {
        bytes += size(state_.rows[next]);
        if (!state_.report.layers[next].is_random) {
          left.push_back(state_.rows[next].match.reference);
          right.push_back(state_.rows[next].match.candidate);
        }
        ++next;
      }
      add_scores(begin, next, left);
      const runtime::TensorMap expected = state_.reference.run_what_can_be(left, inputs, state_.refused_by_reference);
      const runtime::TensorMap found = run_candidate(right, renamed);
      std::vector<Compared> all;
      for (std::size_t i = begin; i < next; ++i) {
        if (is_refused(i)) {
          all.emplace_back();
          continue;
        }
        all.push_back(compare_row(i, inputs, expected, found.at(state_.rows[i].match.candidate->name)));
      }
      measure_floors(begin, all, found, inputs);
      for (std::size_t i = begin; i < next; ++i) {
        if (is_refused(i)) continue;
        keep(i, run, std::move(all[i - begin]), expected.at(state_.rows[i].match.reference->name),
             found.at(state_.rows[i].match.candidate->name));
      }
    }
  }

 private:
  /// Adds to `values` the tensors of scores by which the indices in the pairs of tensors from `begin` to `end` - 1
  /// (indices into state_.rows) are selected. Skips scores that the engine cannot return and scores that no node
  /// computes.
  void add_scores(std::size_t begin, std::size_t end, std::vector<const onnx::Value*>& values) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (!state_.may_judge_choice(state_.rows[i])) continue;
      const onnx::Value* scores = state_.rows[i].choice->choice.scores;
      const bool is_there = std::find(values.begin(), values.end(), scores) != values.end();
      if (scores->producer != nullptr && !is_there) values.push_back(scores);
    }
  }

  /// Returns whether the pair of tensors `index` is not compared, because its elements are random, or because one of
  /// the models does not run with this tensor as an output. In the second case stores the reason in the report.
  [[nodiscard]] bool is_refused(std::size_t index) {
    const auto reference = state_.refused_by_reference.find(state_.rows[index].match.reference);
    const auto candidate = state_.refused_by_candidate.find(state_.rows[index].match.candidate);
    std::string& why = state_.report.layers[index].not_compared;
    if (state_.report.layers[index].is_random) return true;
    if (reference != state_.refused_by_reference.end())
      why = "the reference does not run with this tensor as an output: " + reference->second;
    if (candidate != state_.refused_by_candidate.end())
      why = "the candidate does not run with this tensor as an output: " + candidate->second;
    return !why.empty();
  }

  [[nodiscard]] runtime::TensorMap run_candidate(const std::vector<const onnx::Value*>& outputs,
                                                 const runtime::TensorMap& inputs) {
    try {
      return state_.candidate.run_what_can_be(outputs, inputs, state_.refused_by_candidate);
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::internal) throw;
      throw CandidateFails{error.what()};
    }
  }

  [[nodiscard]] Tolerance tolerance_for(const LayerRow& row, onnx::ElementType reference,
                                        onnx::ElementType candidate) const {
    const bool is_output = row.match.reference->is_output() || row.match.candidate->is_output();
    const auto snr = is_output ? state_.options.snr_db : std::nullopt;
    if (const auto given = given_tolerance(state_.options.relative, state_.options.absolute, snr, reference))
      return *given;
    if (!is_output) return state_.usual_tolerance(row, reference, candidate);
    return output_tolerance(rounding_type(state_.reference_narrow, *row.match.reference, reference),
                            rounding_type(state_.candidate_narrow, *row.match.candidate, candidate), state_.quantized,
                            is_quantized(*row.match.reference) || is_quantized(*row.match.candidate));
  }

  [[nodiscard]] std::string why_tolerance(const LayerRow& row, onnx::ElementType own) const {
    if (state_.options.relative || state_.options.absolute) return "";
    return graft::verify::why_tolerance(own, rounding_type(state_.reference_narrow, *row.match.reference, own),
                                        rounding_type(state_.candidate_narrow, *row.match.candidate, own),
                                        state_.quantized);
  }

  /// Returns whether the candidate's tensor may have another order of elements than the reference's. Rewrites choose
  /// the order of new tensors, but a tensor that keeps its name and dimensions must keep its order.
  [[nodiscard]] static bool may_be_in_other_order(const TensorMatch& match, const onnx::TensorData& reference,
                                                  const onnx::TensorData& candidate) {
    return reference.dims != candidate.dims || match.how == MatchedBy::origin || match.how == MatchedBy::values;
  }

  /// The result of comparing one tensor in one run.
  struct Compared {
    Tolerance tolerance;
    Difference difference;
    std::optional<Rearrangement> layout;
    onnx::TensorData arranged;  ///< The reference, in the candidate's order if `is_arranged`.
    bool is_arranged = false;
    std::optional<NoiseFloor> floor;
    std::string note;  ///< A note about indices that were judged by their scores.
  };

  [[nodiscard]] Compared compare_row(std::size_t index, const runtime::TensorMap& inputs,
                                     const runtime::TensorMap& expected_tensors,
                                     const onnx::TensorData& candidate) const {
    const LayerRow& row = state_.rows[index];
    const onnx::TensorData& reference = expected_tensors.at(row.match.reference->name);
    Compared compared;
    compared.tolerance = tolerance_for(row, reference.type, candidate.type);
    compared.arranged = reference;
    compared.difference = compare(reference, candidate, compared.tolerance);
    if (compared.difference.equal()) return compared;
    if (compared.difference.is_choice && state_.may_judge_choice(row)) {
      const onnx::TensorData& scores = row.choice->scores(inputs, expected_tensors);
      const auto note = judge_choice(*row.choice, scores, reference, candidate, compared.difference);
      compared.note = note.value_or("");
      if (compared.difference.equal()) return compared;
    }
    std::vector<std::vector<std::int64_t>> shapes;
    collect_shapes(row.match.reference, shapes);
    collect_shapes(row.match.candidate, shapes);
    auto layout =
        find_rearrangement(reference, candidate, state_.usual_tolerance(row, reference.type, candidate.type), shapes);
    const bool expected = may_be_in_other_order(row.match, reference, candidate);
    if (!layout && expected) layout = nearest_transposition(reference, candidate);
    // Rewrites move Transposes. If the elements differ too much to show the order, the dimensions show it.
    if (!layout && expected) layout = transposition_between(reference.dims, candidate.dims);
    if (layout && layout->is_known() && expected) {
      compared.arranged = rearrange(reference, *layout);
      compared.is_arranged = true;
      compared.difference = compare(compared.arranged, candidate, compared.tolerance);
      compared.note.clear();
    }
    compared.layout = std::move(layout);
    return compared;
  }

  /// Measures the noise floors of the tensors in `all` (the pairs from index `begin` on) that exceed their tolerance in
  /// this run and did not in earlier runs, and compares these tensors again. `found` are the candidate's tensors.
  void measure_floors(std::size_t begin, std::vector<Compared>& all, const runtime::TensorMap& found,
                      const runtime::TensorMap& inputs) const {
    std::vector<DoubtfulTensor> doubtful;
    std::map<std::string, const onnx::Value*> values;
    for (std::size_t i = 0; i < all.size(); ++i) {
      Compared& compared = all[i];
      const bool is_known = compared.difference.equal() || state_.report.layers[begin + i].failed_runs != 0;
      if (is_known || !compared.note.empty() || !state_.may_have_floor(compared.tolerance)) continue;
      const TensorMatch& match = state_.rows[begin + i].match;
      values.emplace(match.reference->name, match.reference);
      DoubtfulTensor& tensor = doubtful.emplace_back(DoubtfulTensor{.name = match.reference->name,
                                                                    .reference = &compared.arranged,
                                                                    .candidate = &found.at(match.candidate->name),
                                                                    .tolerance = compared.tolerance,
                                                                    .difference = &compared.difference,
                                                                    .floor = &compared.floor});
      tensor.is_of_f64 = depends_on_f64(*match.reference);
      if (!compared.is_arranged || !compared.layout) continue;
      tensor.arrange = [&compared](const onnx::TensorData& drawn) {
        const bool is_same_size = drawn.element_count() == compared.arranged.element_count();
        return is_same_size ? rearrange(drawn, *compared.layout) : drawn;
      };
    }
    const auto run_draws_in = [&](const runtime::Engine* engine, F64Noise f64_noise) -> RunDraws {
      if (engine == nullptr) return {};
      return [&, engine, f64_noise](const std::vector<DoubtfulTensor>& tensors, const LookAtDraw& look) {
        std::vector<const onnx::Value*> drawn;
        for (const DoubtfulTensor& tensor : tensors) drawn.push_back(values.at(tensor.name));
        state_.reference.run_noisy(*engine, drawn, inputs, look, f64_noise);
      };
    };
    const runtime::Engine& first = state_.reference.engine();
    const runtime::Engine* second = first.second();
    judge_by_noise(doubtful, run_draws_in(&first, F64Noise::of_engine), run_draws_in(second, F64Noise::of_f32),
                   second == nullptr ? "" : second->name());
  }

  void keep(std::size_t index, std::size_t run, Compared compared, const onnx::TensorData& reference,
            const onnx::TensorData& candidate) {
    LayerRow& row = state_.rows[index];
    ComparedLayer& layer = state_.report.layers[index];
    const TensorRange reference_range = range_of(reference);
    const TensorRange candidate_range = range_of(candidate);
    row.reference_nan = reference_range.nan;
    row.candidate_nan = candidate_range.nan;
    Difference& difference = compared.difference;
    if (compared.floor && difference.equal() && !compared.is_arranged) compared.layout.reset();
    if (!difference.equal()) ++layer.failed_runs;
    const bool is_lost = difference.equal() && is_lost_in_noise(difference, compared.floor);
    layer.lost_runs += is_lost ? 1 : 0;
    layer.compared += difference.finite;
    if (run != 0 && !is_worse(difference, layer.difference)) return;
    row.is_arranged = compared.is_arranged;
    row.has_other_dims = reference.dims != candidate.dims;
    layer.worst_run = run;
    layer.tolerance = compared.tolerance;
    layer.tolerance.why = why_tolerance(row, candidate.type);
    layer.reference.type = reference.type_and_shape();
    layer.candidate.type = candidate.type_and_shape();
    layer.reference_range = reference_range;
    layer.candidate_range = candidate_range;
    layer.layout = std::move(compared.layout);
    layer.floor = summary_of(compared.floor, difference);
    layer.is_worst_lost = is_lost;
    if (difference.incomparable.empty() && is_real(reference.type) && compared.arranged.dims == candidate.dims) {
      layer.error = error_figures(compared.arranged, candidate);
    }
    if (state_.emulated) {
      const auto scale = state_.scales.find(layer.candidate.name);
      layer.rounding = rounding_effect(reference, *state_.emulated, scale == state_.scales.end() ? 1 : scale->second);
    }
    if (run == 0 && !(difference.selection && difference.equal())) check_output(row, reference, candidate);
    layer.difference = std::move(difference);
    layer.diagnosis = std::move(compared.note);
    if (layer.equal() && !layer.layout) return;
    const std::string found = diagnose(layer, compared.arranged, candidate);
    layer.diagnosis += (layer.diagnosis.empty() || found.empty() ? "" : "; ") + found;
  }

  /// Adds a problem to the report if the output cannot replace the reference's output in a program: one type is an
  /// integer and the other real, or the dimensions differ although the inputs have the same layout. Outputs of
  /// different real types are compared by their elements.
  void check_output(const LayerRow& row, const onnx::TensorData& reference, const onnx::TensorData& candidate) {
    if (!row.match.reference->is_output() || !row.match.candidate->is_output()) return;
    const bool is_exchanged = state_.inputs_are_exchanged && exchanged_output(reference.dims, candidate.dims);
    const bool types_fit =
        reference.type == candidate.type || (is_floating_point(reference.type) && is_floating_point(candidate.type));
    if (types_fit && (reference.dims == candidate.dims || is_exchanged)) return;
    state_.report.problems.push_back(fmt::format("output '{}' is {} in the reference and {} in the candidate",
                                                 row.match.reference->name, reference.type_and_shape(),
                                                 candidate.type_and_shape()));
  }

  static std::string diagnose(const ComparedLayer& layer, const onnx::TensorData& reference,
                              const onnx::TensorData& candidate) {
    std::vector<std::string> found;
    if (layer.layout) found.push_back(layer.layout->text);
    const auto more = [&](std::int64_t in_candidate, std::int64_t in_reference, std::string_view what) {
      if (in_candidate > in_reference)
        found.push_back(fmt::format("{} {} in the candidate, {} in the reference", in_candidate, what, in_reference));
    };
    more(layer.candidate_range.nan, layer.reference_range.nan, "NaN");
    more(layer.candidate_range.infinite, layer.reference_range.infinite, "infinite");
    if (!layer.difference.equal() && !layer.layout) {
      if (auto scale = find_scale(reference, candidate, layer.tolerance)) found.push_back(std::move(*scale));
      if (layer.candidate_range.lowest && layer.candidate_range.largest() == 0 && layer.reference_range.largest() > 0)
        found.emplace_back("all 0 in the candidate");
    }
    return fmt::format("{}", fmt::join(found, "; "));
  }

  LayerState& state_;
};

}  // namespace

void compare_pairs(LayerState& state, std::size_t run, const runtime::TensorMap& inputs,
                   const runtime::TensorMap& renamed) {
  PairComparison(state).run(run, inputs, renamed);
}

void measure_losses(LayerState& state) {
  state.report.weakest.reset();
  constexpr double half = 6;  // In dB: half of the amplitude.
  double most = half;
  for (std::size_t i = 0; i < state.rows.size(); ++i) {
    ComparedLayer& layer = state.report.layers[i];
    layer.snr_lost_db.reset();
    std::optional<double> before;
    bool all_known = !state.rows[i].candidate_region.inputs.empty();
    for (const onnx::Value* input : state.rows[i].candidate_region.inputs) {
      const auto row = state.rows_by_candidate.find(input);
      const bool is_known =
          row != state.rows_by_candidate.end() && state.report.layers[row->second].error.snr_db.has_value();
      all_known = all_known && is_known;
      if (!is_known) continue;
      const double snr = *state.report.layers[row->second].error.snr_db;
      before = std::min(before.value_or(snr), snr);
    }
    if (!all_known || !layer.error.snr_db) continue;
    layer.snr_lost_db = *before - *layer.error.snr_db;
    if (*layer.snr_lost_db > most) {
      most = *layer.snr_lost_db;
      state.report.weakest = i;
    }
  }
}

}  // namespace graft::verify
