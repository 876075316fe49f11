// Both models in groups of tensors; then single nodes of the candidate with the reference's inputs, until one is wrong.
#include "verify/layers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "graft/error.hpp"
#include "graph/extract.hpp"
#include "graph/operator_node.hpp"
#include "graph/schema.hpp"
#include "verify/ends.hpp"
#include "verify/node_differences.hpp"
#include "verify/partial_runs.hpp"
#include "verify/pieces.hpp"

namespace graft {
namespace {

std::string text_of(const TensorData& tensor) {
  return fmt::format("{}[{}]", to_string(tensor.type), fmt::join(tensor.dims, ", "));
}

bool is_close(double a, double b, double scale) {
  constexpr double relative = 1e-4;
  return std::abs(a - b) <= relative * scale;
}

/// The same numbers, in whatever order, as far as sums tell.
bool same_numbers(const TensorRange& a, const TensorRange& b) {
  if (a.count != b.count || a.nan != b.nan || a.infinite != b.infinite || !a.lowest || !b.lowest) return false;
  const double largest = std::max(a.largest(), b.largest());
  return is_close(*a.lowest, *b.lowest, largest) && is_close(*a.highest, *b.highest, largest) &&
         is_close(a.squares, b.squares, std::max(a.squares, b.squares)) &&
         is_close(a.sum, b.sum, std::sqrt(a.squares * static_cast<double>(a.count)));
}

/// Numbers that are all the same, or few, are found in many places.
bool tells_apart(const TensorRange& range) {
  constexpr std::int64_t few = 4;
  return range.count >= few && range.lowest && *range.lowest != *range.highest;
}

/// Shapes that the elements of a value had on their way, without having been changed.
void collect_shapes(const Value* value, std::vector<std::vector<std::int64_t>>& shapes) {
  while (value->producer != nullptr && has_trait(*value->producer, trait::rearranges)) {
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

/// The candidate does not run; the reference's own failures go to the caller.
struct CandidateFails {
  std::string message;
};

class Layers {
 public:
  Layers(const runtime::Engine& engine, const Model& reference, const Model& candidate, const LayerOptions& options,
         Scales scales, bool trust_names)
      : engine_(engine),
        options_(options),
        trust_names_(trust_names),
        scales_(std::move(scales)),
        reference_(engine, reference, options.reference_kernels, options.threads),
        candidate_(engine, candidate, options.candidate_kernels, options.threads),
        matcher_(reference_.model(), candidate_.model()),
        quantized_(options.emulated == Precision::int8 || (quantizes(candidate) && !quantizes(reference))) {}

  LayerReport run() {
    inputs_ = pair_io(fed_inputs(reference_.model()), fed_inputs(candidate_.model()), "input", report_.problems);
    if (!report_.problems.empty()) return std::move(report_);
    const std::size_t runs = options_.data.empty() ? options_.seeds : options_.data.size();
    for (std::size_t run = 0; run < runs; ++run) {
      const TensorMap inputs = inputs_of(run);
      const TensorMap renamed = for_candidate(inputs);
      try {
        if (run == 0) prepare(inputs, renamed);
        compare_all(run, inputs, renamed);
      } catch (const CandidateFails& failed) {
        report_.failure = find_failure(candidate_, renamed, failed.message);
        report_.layers.clear();
        return std::move(report_);
      }
      measure_losses();
      if (!report_.nan_begins) find_nan(inputs);
      if (!report_.first && report_.first_different() != nullptr) find_divergence(inputs);
      report_.runs = run + 1;
    }
    return std::move(report_);
  }

 private:
  struct Row {
    TensorMatch match;
    GraphRegion reference_region;
    GraphRegion candidate_region;
    bool has_other_dims = false;
    bool is_arranged = false;        ///< The candidate may have it in another order, and was compared in that.
    std::int64_t reference_nan = 0;  ///< In the latest run.
    std::int64_t candidate_nan = 0;
  };

  // Inputs.

  TensorMap inputs_of(std::size_t run) {
    if (!options_.data.empty()) return options_.data[run];
    InputOptions made_up{.seed = run};
    made_up.dims = options_.dims;
    made_up.shapes = options_.shapes;
    made_up.ranges = options_.ranges;
    if (!whole_) {
      whole_ =
          engine_.compile(reference_.model(), {.kernels = options_.reference_kernels, .threads = options_.threads});
    }
    TensorMap ignored;
    TensorMap inputs = made_up_.inputs(*whole_, reference_.model(), made_up, ignored);
    report_.narrowed = made_up_.narrowed();
    report_.why_sizes = made_up_.why_sizes();
    return inputs;
  }

  [[nodiscard]] TensorMap for_candidate(const TensorMap& inputs) const { return inputs_for(inputs_, inputs); }

  // Which tensors.

  void prepare(const TensorMap& inputs, const TensorMap& renamed) {
    for (const IoPair& pair : inputs_) {
      const auto found = inputs.find(pair.reference->name);
      if (found == inputs.end()) {
        throw Error(fmt::format("{}: input '{}' is missing", reference_.model().source, pair.reference->name));
      }
      const auto order = order_of_input(*pair.candidate, found->second.dims);
      inputs_are_exchanged_ = inputs_are_exchanged_ || order.has_value();
      report_.inputs.push_back(fmt::format(
          "{}: {}{}", pair.reference->name, text_of(found->second),
          order ? fmt::format(", in the candidate [{}]", fmt::join(order->final_dims, ", ")) : std::string()));
      matcher_.add(*pair.reference, *pair.candidate, MatchedBy::input);
    }
    reference_.infer(inputs);
    candidate_.infer(renamed);
    reference_narrow_ = narrow_types(reference_.model());
    candidate_narrow_ = narrow_types(candidate_.model());
    std::vector<std::string> alone;
    for (const IoPair& pair :
         pair_io(all_outputs(reference_.model()), all_outputs(candidate_.model()), "output", alone)) {
      if (pair.reference->producer == nullptr || pair.candidate->producer == nullptr) continue;
      if (matcher_.candidate_of(*pair.reference) != nullptr || matcher_.reference_of(*pair.candidate) != nullptr)
        continue;
      const bool by_name = pair.reference->name == pair.candidate->name;
      matcher_.add(*pair.reference, *pair.candidate, by_name ? MatchedBy::name : MatchedBy::output);
    }
    matcher_.match(trust_names_);
    reference_.measure_sizes(tensors_of(reference_.model()), inputs);
    candidate_.measure_sizes(tensors_of(candidate_.model()), renamed);
    match_values(inputs, renamed);
    find_unmatched_outputs();
    report_.reference_tensors = tensors_of(reference_.model()).size();
    report_.candidate_tensors = tensors_of(candidate_.model()).size();
    for (const TensorMatch& match : matcher_.matches()) {
      if (match.how != MatchedBy::input) add_row(match);
    }
  }

  /// An output of one may be a tensor inside the other.
  void find_unmatched_outputs() {
    for (const Value* output : reference_.model().graph().outputs()) {
      if (output->producer != nullptr && !output->constant() && matcher_.candidate_of(*output) == nullptr)
        report_.problems.push_back(fmt::format("the candidate has no output '{}'", output->name));
    }
    for (const Value* output : candidate_.model().graph().outputs()) {
      if (output->producer != nullptr && !output->constant() && matcher_.reference_of(*output) == nullptr)
        report_.problems.push_back(fmt::format("the reference has no output '{}'", output->name));
    }
  }

  /// What is left over on both sides is paired by its numbers, as long as those are right.
  void match_values(const TensorMap& inputs, const TensorMap& renamed) {
    const std::vector<const Value*> left = matcher_.unmatched_of_reference();
    const std::vector<const Value*> right = matcher_.unmatched_of_candidate();
    if (left.empty() || right.empty()) return;
    const auto expected =
        reference_.ranges(left, inputs, options_.memory, tell_of("reference"), &refused_by_reference_);
    const auto found = candidate_ranges(right, renamed);
    for (const Value* tensor : right) {
      const auto range = found.find(tensor);
      if (range == found.end() || !tells_apart(range->second)) continue;
      for (const Value* other : left) {
        const auto numbers = expected.find(other);
        if (numbers == expected.end() || matcher_.candidate_of(*other) != nullptr) continue;
        if (!same_numbers(numbers->second, range->second)) continue;
        matcher_.add(*other, *tensor, MatchedBy::values);
        break;
      }
    }
  }

  [[nodiscard]] std::unordered_map<const Value*, TensorRange> candidate_ranges(const std::vector<const Value*>& values,
                                                                               const TensorMap& inputs) {
    try {
      return candidate_.ranges(values, inputs, options_.memory, tell_of("candidate"), &refused_by_candidate_);
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::internal) throw;
      throw CandidateFails{error.what()};
    }
  }

  void add_row(const TensorMatch& match) {
    Row& row = rows_.emplace_back();
    row.match = match;
    rows_by_candidate_.emplace(match.candidate, rows_.size() - 1);
    LayerComparison& layer = report_.layers.emplace_back();
    layer.reference = match.reference->name;
    layer.candidate = match.candidate->name;
    layer.matched_by = match.how;
    const Node& node = computing_node(*match.candidate->producer);
    const OperatorMatch graft_operator = find_operator_for(node);
    layer.op = graft_operator ? std::string(graft_operator.type->name) : node.op_type;
    layer.reference_node = describe(*match.reference->producer);
    layer.candidate_node = describe(node);
    layer.is_always_empty = is_always_empty(*match.reference);
    layer.is_output = match.candidate->is_output() || match.reference->is_output();
    row.reference_region =
        region_before({match.reference}, [&](const Value& value) { return matcher_.candidate_of(value) != nullptr; });
    row.candidate_region =
        region_before({match.candidate}, [&](const Value& value) { return matcher_.reference_of(value) != nullptr; });
    for (const Node* node : row.reference_region.nodes) layer.reference_nodes.push_back(describe(*node));
    for (const Node* node : row.candidate_region.nodes) layer.candidate_nodes.push_back(describe(*node));
  }

  // Comparison.

  void tell(const std::string& what, std::size_t done, std::size_t total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  [[nodiscard]] std::function<void(std::size_t, std::size_t)> tell_of(std::string which) const {
    return [this, which = std::move(which)](std::size_t done, std::size_t total) {
      tell(fmt::format("pairing tensors of the {} by their numbers", which), done, total);
    };
  }

  void compare_all(std::size_t run, const TensorMap& inputs, const TensorMap& renamed) {
    std::size_t next = 0;
    while (next < rows_.size()) {
      tell("comparing tensors", next, rows_.size());
      const std::size_t begin = next;
      std::int64_t bytes = 0;
      std::vector<const Value*> left;
      std::vector<const Value*> right;
      const auto size = [&](const Row& row) {
        return reference_.bytes_of(*row.match.reference) + candidate_.bytes_of(*row.match.candidate);
      };
      while (next < rows_.size() && (left.empty() || bytes + size(rows_[next]) <= options_.memory)) {
        bytes += size(rows_[next]);
        left.push_back(rows_[next].match.reference);
        right.push_back(rows_[next].match.candidate);
        ++next;
      }
      const TensorMap expected = reference_.run_what_can_be(left, inputs, refused_by_reference_);
      const TensorMap found = run_candidate(right, renamed);
      std::vector<Compared> all;
      for (std::size_t i = begin; i < next; ++i) {
        if (is_refused(i)) {
          all.emplace_back();
          continue;
        }
        all.push_back(
            compare_row(i, expected.at(rows_[i].match.reference->name), found.at(rows_[i].match.candidate->name)));
      }
      measure_floors(begin, all, inputs);
      for (std::size_t i = begin; i < next; ++i) {
        if (is_refused(i)) continue;
        keep(i, run, std::move(all[i - begin]), expected.at(rows_[i].match.reference->name),
             found.at(rows_[i].match.candidate->name));
      }
    }
  }

  /// Whether one of both models does not run where this tensor is returned.
  [[nodiscard]] bool is_refused(std::size_t index) {
    const auto reference = refused_by_reference_.find(rows_[index].match.reference);
    const auto candidate = refused_by_candidate_.find(rows_[index].match.candidate);
    std::string& why = report_.layers[index].not_compared;
    if (reference != refused_by_reference_.end())
      why = "the reference does not run where it is returned: " + reference->second;
    if (candidate != refused_by_candidate_.end())
      why = "the candidate does not run where it is returned: " + candidate->second;
    return !why.empty();
  }

  [[nodiscard]] TensorMap run_candidate(const std::vector<const Value*>& outputs, const TensorMap& inputs) {
    try {
      return candidate_.run_what_can_be(outputs, inputs, refused_by_candidate_);
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::internal) throw;
      throw CandidateFails{error.what()};
    }
  }

  /// How much of the signal each layer loses.
  void measure_losses() {
    report_.weakest.reset();
    constexpr double half = 6;  // decibels
    double most = half;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      LayerComparison& layer = report_.layers[i];
      layer.snr_lost_db.reset();
      std::optional<double> before;
      bool all_known = !rows_[i].candidate_region.inputs.empty();
      for (const Value* input : rows_[i].candidate_region.inputs) {
        const auto row = rows_by_candidate_.find(input);
        const auto snr = row == rows_by_candidate_.end() ? std::nullopt : report_.layers[row->second].error.snr_db;
        all_known = all_known && snr.has_value();
        if (snr) before = std::min(before.value_or(*snr), *snr);
      }
      if (!all_known || !layer.error.snr_db) continue;
      layer.snr_lost_db = *before - *layer.error.snr_db;
      if (*layer.snr_lost_db > most) {
        most = *layer.snr_lost_db;
        report_.weakest = i;
      }
    }
  }

  [[nodiscard]] Tolerance tolerance_for(const Row& row, ElementType reference, ElementType candidate) const {
    const bool is_output = row.match.reference->is_output() || row.match.candidate->is_output();
    const auto snr = is_output ? options_.snr_db : std::nullopt;
    if (const auto given = given_tolerance(options_.relative, options_.absolute, snr, reference)) return *given;
    const Tolerance usual = usual_tolerance(row, reference, candidate);
    if (!is_output || !quantized_) return usual;
    return output_tolerance(reference, candidate, true,
                            is_quantized(*row.match.reference) || is_quantized(*row.match.candidate));
  }

  /// Where none is given; and for telling orders apart, of which many are within a wide tolerance.
  [[nodiscard]] Tolerance usual_tolerance(const Row& row, ElementType reference, ElementType candidate) const {
    return layer_tolerance(rounding_type(reference_narrow_, *row.match.reference, reference),
                           rounding_type(candidate_narrow_, *row.match.candidate, candidate), quantized_,
                           is_quantized(*row.match.reference) || is_quantized(*row.match.candidate));
  }

  [[nodiscard]] std::string why_tolerance(const Row& row, ElementType own) const {
    if (options_.relative || options_.absolute) return "";
    return graft::why_tolerance(own, rounding_type(reference_narrow_, *row.match.reference, own),
                                rounding_type(candidate_narrow_, *row.match.candidate, own), quantized_);
  }

  /// Rewrites put tensors of their own into the order that they need. One that is called as before has to be as before.
  [[nodiscard]] static bool may_be_in_other_order(const TensorMatch& match, const TensorData& reference,
                                                  const TensorData& candidate) {
    return reference.dims != candidate.dims || match.how == MatchedBy::origin || match.how == MatchedBy::values;
  }

  /// A tensor in one run.
  struct Compared {
    Tolerance tolerance;
    Difference difference;
    std::optional<Rearrangement> layout;
    TensorData arranged;  ///< The reference, in the candidate's order where `is_arranged`.
    bool is_arranged = false;
    std::optional<NoiseFloor> floor;
  };

  [[nodiscard]] Compared compare_row(std::size_t index, const TensorData& reference,
                                     const TensorData& candidate) const {
    const Row& row = rows_[index];
    Compared compared;
    compared.tolerance = tolerance_for(row, reference.type, candidate.type);
    compared.arranged = reference;
    compared.difference = compare(reference, candidate, compared.tolerance);
    if (compared.difference.equal()) return compared;
    std::vector<std::vector<std::int64_t>> shapes;
    collect_shapes(row.match.reference, shapes);
    collect_shapes(row.match.candidate, shapes);
    auto layout =
        find_rearrangement(reference, candidate, usual_tolerance(row, reference.type, candidate.type), shapes);
    const bool expected = may_be_in_other_order(row.match, reference, candidate);
    if (!layout && expected) layout = nearest_transposition(reference, candidate);
    // Rewrites move transpositions. Where the numbers are too far off to tell, the dimensions do.
    if (!layout && expected) layout = transposition_between(reference.dims, candidate.dims);
    if (layout && layout->is_known() && expected) {
      compared.arranged = rearrange(reference, *layout);
      compared.is_arranged = true;
      compared.difference = compare(compared.arranged, candidate, compared.tolerance);
    }
    compared.layout = std::move(layout);
    return compared;
  }

  [[nodiscard]] bool may_have_floor(const Tolerance& tolerance) const {
    return !options_.relative && !options_.absolute && !tolerance.snr_db && !options_.emulated;
  }

  /// Of the tensors from `begin` on that are further off than their tolerance for the first time.
  void measure_floors(std::size_t begin, std::vector<Compared>& all, const TensorMap& inputs) const {
    std::vector<std::size_t> doubtful;
    std::vector<const Value*> values;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Value* value = rows_[begin + i].match.reference;
      const bool is_known = all[i].difference.equal() || report_.layers[begin + i].failed_runs != 0;
      if (is_known || !may_have_floor(all[i].tolerance)) continue;
      doubtful.push_back(i);
      values.push_back(value);
      all[i].floor.emplace(all[i].tolerance);
    }
    if (doubtful.empty()) return;
    reference_.run_noisy(values, inputs, [&](const TensorMap& moved) {
      for (const std::size_t i : doubtful) {
        add_to(*all[i].floor, all[i].arranged, moved.at(rows_[begin + i].match.reference->name),
               all[i].is_arranged ? all[i].layout : std::nullopt);
      }
    });
    for (const std::size_t i : doubtful) {
      if (all[i].floor->runs() == 0) all[i].floor.reset();
    }
  }

  static void add_to(NoiseFloor& floor, const TensorData& arranged, const TensorData& moved,
                     const std::optional<Rearrangement>& layout) {
    const bool is_same_size = moved.element_count() == arranged.element_count();
    floor.add(arranged, layout && is_same_size ? rearrange(moved, *layout) : moved);
  }

  void keep(std::size_t index, std::size_t run, Compared compared, const TensorData& reference,
            const TensorData& candidate) {
    Row& row = rows_[index];
    LayerComparison& layer = report_.layers[index];
    const TensorRange reference_range = range_of(reference);
    const TensorRange candidate_range = range_of(candidate);
    row.reference_nan = reference_range.nan;
    row.candidate_nan = candidate_range.nan;
    Difference& difference = compared.difference;
    if (compared.floor) {
      difference = compare(compared.arranged, candidate, compared.tolerance, &*compared.floor);
      if (difference.equal() && !compared.is_arranged) compared.layout.reset();
    }
    if (!difference.equal()) ++layer.failed_runs;
    layer.compared += difference.finite;
    const auto badness = [](const Difference& d) {
      return std::tuple(d.incomparable.empty() ? 0 : 1, d.mismatched != 0, d.within_noise != 0, d.excess);
    };
    if (run != 0 && badness(difference) <= badness(layer.difference)) return;
    row.is_arranged = compared.is_arranged;
    row.has_other_dims = reference.dims != candidate.dims;
    layer.worst_run = run;
    layer.tolerance = compared.tolerance;
    layer.why_tolerance = why_tolerance(row, candidate.type);
    layer.reference_type = text_of(reference);
    layer.candidate_type = text_of(candidate);
    layer.reference_range = reference_range;
    layer.candidate_range = candidate_range;
    layer.layout = std::move(compared.layout);
    layer.floor = std::move(compared.floor);
    if (difference.incomparable.empty() && is_real(reference.type) && compared.arranged.dims == candidate.dims) {
      layer.error = error_figures(compared.arranged, candidate);
    }
    if (options_.emulated) {
      const auto scale = scales_.find(layer.candidate);
      layer.rounding = rounding_effect(reference, *options_.emulated, scale == scales_.end() ? 1 : scale->second);
    }
    if (run == 0 && !(difference.selection && difference.equal())) check_output(row, reference, candidate);
    layer.difference = std::move(difference);
    layer.diagnosis = layer.equal() && !layer.layout ? "" : diagnose(layer, compared.arranged, candidate);
  }

  /// What calls the candidate reads its outputs as those of the reference: in another type or other dimensions they are
  /// not the same, unless it gives its inputs in another order too.
  void check_output(const Row& row, const TensorData& reference, const TensorData& candidate) {
    if (!row.match.reference->is_output() || !row.match.candidate->is_output()) return;
    const bool is_exchanged = inputs_are_exchanged_ && exchanged_output(reference.dims, candidate.dims);
    if (reference.type == candidate.type && (reference.dims == candidate.dims || is_exchanged)) return;
    report_.problems.push_back(fmt::format("output '{}' is {} in the reference and {} in the candidate",
                                           row.match.reference->name, text_of(reference), text_of(candidate)));
  }

  static std::string diagnose(const LayerComparison& layer, const TensorData& reference, const TensorData& candidate) {
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

  // Where it begins.

  /// An operator that makes NaN of numbers: the logarithm of a negative one, 0 / 0.
  [[nodiscard]] bool makes_nan(std::size_t index) const {
    const auto& made_of = rows_[index].candidate_region.inputs;
    return rows_[index].candidate_nan + rows_[index].reference_nan != 0 &&
           std::all_of(made_of.begin(), made_of.end(), [&](const Value* input) {
             const auto row = rows_by_candidate_.find(input);
             return row == rows_by_candidate_.end() ||
                    (rows_[row->second].candidate_nan == 0 && rows_[row->second].reference_nan == 0);
           });
  }

  void find_nan(const TensorMap& inputs) {
    const auto has_nan = [](const auto& input) { return range_of(input.second).nan != 0; };
    if (std::any_of(inputs.begin(), inputs.end(), has_nan)) return;
    for (std::size_t i = 0; i < rows_.size() && !report_.nan_begins; ++i) {
      if (makes_nan(i)) report_.nan_begins = i;
    }
  }

  /// The candidate's node makes NaN of what differs from the reference's tensors only by rounding, and not of those
  /// themselves: it is on the edge of what it is defined for.
  bool blame_for_nan(std::size_t index, const TensorMap& inputs) {
    const Row& row = rows_[index];
    if (report_.nan_begins != index || row.candidate_nan <= row.reference_nan) return false;
    conclude(
        index,
        fmt::format("right; given its own, which have no NaN, it gives {} NaN where the reference has {}: rounding "
                    "brings them to the edge of what the operator is defined for",
                    row.candidate_nan, row.reference_nan),
        inputs, candidate_values(row.candidate_region.inputs, for_candidate(inputs)));
    return true;
  }

  /// The candidate's numbers are the reference's, under the reference's name, in another order: right only if what
  /// comes after expects that.
  [[nodiscard]] bool is_suspect(std::size_t index) const {
    const LayerComparison& layer = report_.layers[index];
    return layer.layout.has_value() && !rows_[index].is_arranged && !layer.difference.equal();
  }

  /// In another order, which its dimensions do not show.
  [[nodiscard]] bool is_reordered(std::size_t index) const {
    return report_.layers[index].layout.has_value() && !rows_[index].has_other_dims;
  }

  [[nodiscard]] std::vector<std::size_t> reordered_inputs(std::size_t index) const {
    std::vector<std::size_t> reordered;
    for (const Value* input : rows_[index].candidate_region.inputs) {
      const auto found = rows_by_candidate_.find(input);
      if (found != rows_by_candidate_.end() && is_reordered(found->second)) reordered.push_back(found->second);
    }
    return reordered;
  }

  void find_divergence(const TensorMap& inputs) {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!report_.layers[i].equal() && can_be_run_alone(i)) open.push_back(i);
    }
    std::size_t next = 0;
    for (std::size_t group = 1; next < open.size(); group *= 2) {
      tell("looking for the first divergence", next, open.size());
      const std::size_t end = std::min(open.size(), next + group);
      if (find_divergence_among(
              {open.begin() + static_cast<std::ptrdiff_t>(next), open.begin() + static_cast<std::ptrdiff_t>(end)},
              inputs))
        return;
      next = end;
    }
    for (const std::size_t index : open) {
      if (!is_suspect(index) || !report_.layers[index].is_output) continue;
      if (blame_the_order_of({index}, inputs)) return;
    }
  }

  /// Concludes that the node is at fault which brought the order of one of these tensors into being: one that gives it
  /// though it is given the reference's inputs in the reference's order. False where no node does that.
  bool blame_the_order_of(std::vector<std::size_t> waiting, const TensorMap& inputs) {
    std::set<std::size_t> known;
    while (!waiting.empty()) {
      const std::size_t index = waiting.back();
      waiting.pop_back();
      if (!known.insert(index).second) continue;
      const TensorMap expected = reference_values(needed_for(rows_[index]), inputs);
      if (run_alone(index, expected, Order::of_reference).is_wrong()) {
        conclude(index, wrong_order(*report_.layers[index].layout), inputs);
        report_.first->order = report_.layers[index].layout->kind;
        return true;
      }
      const std::vector<std::size_t> before = reordered_inputs(index);
      waiting.insert(waiting.end(), before.begin(), before.end());
    }
    return false;
  }

  bool find_divergence_among(const std::vector<std::size_t>& indices, const TensorMap& inputs) {
    std::size_t next = 0;
    while (next < indices.size()) {
      std::set<const Value*> needed;
      std::int64_t bytes = 0;
      const std::size_t begin = next;
      while (next < indices.size() && (next == begin || bytes < options_.memory)) {
        for (const Value* value : needed_for(rows_[indices[next]])) {
          if (needed.insert(value).second) bytes += reference_.bytes_of(*value);
        }
        ++next;
      }
      const TensorMap expected = reference_values({needed.begin(), needed.end()}, inputs);
      for (std::size_t i = begin; i < next; ++i) {
        if (is_wrong_by_itself(indices[i], expected, inputs) || blame_for_nan(indices[i], inputs)) return true;
      }
    }
    return false;
  }

  /// Whether what it is made of can be looked at.
  [[nodiscard]] bool can_be_run_alone(std::size_t index) const {
    const std::vector<const Value*> needed = needed_for(rows_[index]);
    return std::none_of(needed.begin(), needed.end(),
                        [&](const Value* value) { return refused_by_reference_.contains(value); });
  }

  [[nodiscard]] std::vector<const Value*> needed_for(const Row& row) const {
    std::vector<const Value*> needed{row.match.reference};
    for (const Value* input : row.candidate_region.inputs) {
      if (const Value* partner = matcher_.reference_of(*input)) needed.push_back(partner);
    }
    for (const Value* input : row.reference_region.inputs) needed.push_back(input);
    return needed;
  }

  [[nodiscard]] TensorMap reference_values(const std::vector<const Value*>& values, const TensorMap& inputs) const {
    return values_of(reference_, values, inputs);
  }

  [[nodiscard]] TensorMap candidate_values(const std::vector<const Value*>& values, const TensorMap& inputs) const {
    return values_of(candidate_, values, inputs);
  }

  static TensorMap values_of(const PartialRuns& model, const std::vector<const Value*>& values,
                             const TensorMap& inputs) {
    std::vector<const Value*> computed;
    TensorMap result;
    for (const Value* value : values) {
      const auto given = inputs.find(value->name);
      if (value->is_input && given != inputs.end()) {
        result.emplace(value->name, given->second);
      } else if (std::find(computed.begin(), computed.end(), value) == computed.end()) {
        computed.push_back(value);
      }
    }
    if (!computed.empty()) result.merge(model.run(computed, inputs));
    return result;
  }

  /// Which order the tensors have that a node is given by itself, and the one that it is to give.
  enum class Order : std::uint8_t {
    of_candidate,  ///< As the candidate has them.
    of_reference,  ///< As the reference has them, unless their dimensions differ.
  };

  /// What the candidate would have here if it were right.
  [[nodiscard]] TensorData as_in_candidate(const Value& value, const TensorData& reference, Order wanted) const {
    if (value.is_input) return as_input(value, reference);
    const auto row = rows_by_candidate_.find(&value);
    if (row == rows_by_candidate_.end()) return in_type(reference, value.type);
    return in_type(in_order(row->second, reference, wanted), value.type);
  }

  [[nodiscard]] TensorData in_order(std::size_t index, const TensorData& reference, Order wanted) const {
    const auto& layout = report_.layers[index].layout;
    const bool as_it_is = !layout || !layout->is_known() || (wanted == Order::of_reference && is_reordered(index));
    return as_it_is ? reference : rearrange(reference, *layout);
  }

  [[nodiscard]] TensorMap candidate_feeds(const Row& row, const TensorMap& expected, Order order) const {
    TensorMap feeds;
    for (const Value* input : row.candidate_region.inputs) {
      const Value* partner = matcher_.reference_of(*input);
      if (partner == nullptr) {
        throw Error(fmt::format("{}: input '{}' has no counterpart", candidate_.model().source, input->name));
      }
      feeds.emplace(input->name, as_in_candidate(*input, expected.at(partner->name), order));
    }
    return feeds;
  }

  struct Local {
    Difference difference;
    std::string failure;
    std::optional<TensorData> found;
    [[nodiscard]] bool is_wrong() const { return !failure.empty() || !difference.equal(); }
  };

  /// The candidate's nodes alone, given what the reference has.
  [[nodiscard]] Local run_alone(std::size_t index, const TensorMap& expected, Order order) const {
    const Row& row = rows_[index];
    Local local;
    try {
      const Model part = extract(candidate_.model(), row.candidate_region.inputs, {row.match.candidate});
      const TensorMap results = candidate_.run(part, candidate_feeds(row, expected, order));
      local.found = results.at(row.match.candidate->name);
      local.difference = difference_from(index, expected, *local.found, order);
      if (!local.difference.equal() && may_have_floor(report_.layers[index].tolerance)) {
        local.difference = difference_beyond_noise(index, expected, *local.found, order);
      }
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::internal) throw;
      local.failure = error.what();
    }
    return local;
  }

  [[nodiscard]] Difference difference_from(std::size_t index, const TensorMap& expected, const TensorData& found,
                                           Order order) const {
    const TensorData& reference = expected.at(rows_[index].match.reference->name);
    return compare(in_order(index, reference, order), found, report_.layers[index].tolerance);
  }

  [[nodiscard]] bool reference_runs_alone(std::size_t index, const TensorMap& expected) const {
    const Row& row = rows_[index];
    try {
      TensorMap feeds;
      for (const Value* input : row.reference_region.inputs) feeds.emplace(input->name, expected.at(input->name));
      static_cast<void>(
          reference_.run(extract(reference_.model(), row.reference_region.inputs, {row.match.reference}), feeds));
      return true;
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::internal) throw;
      return false;
    }
  }

  /// The noise is that of the reference's nodes alone, given the same.
  [[nodiscard]] Difference difference_beyond_noise(std::size_t index, const TensorMap& expected,
                                                   const TensorData& found, Order order) const {
    const Row& row = rows_[index];
    const std::string& name = row.match.reference->name;
    const Model part = extract(reference_.model(), row.reference_region.inputs, {row.match.reference});
    TensorMap feeds;
    for (const Value* input : row.reference_region.inputs) feeds.emplace(input->name, expected.at(input->name));
    const TensorData arranged = in_order(index, expected.at(name), order);
    NoiseFloor floor(report_.layers[index].tolerance);
    reference_.run_noisy(part, feeds, [&](const TensorMap& moved) {
      const bool has_same_dims = moved.at(name).dims == expected.at(name).dims;
      floor.add(arranged, has_same_dims ? in_order(index, moved.at(name), order) : moved.at(name));
    });
    return compare(arranged, found, report_.layers[index].tolerance, floor.runs() == 0 ? nullptr : &floor);
  }

  /// A tensor that differs is no fault of its node where the node gives the reference's numbers for the reference's
  /// inputs, in either order: which one is right shows where it is read.
  bool is_wrong_by_itself(std::size_t index, const TensorMap& expected, const TensorMap& inputs) {
    LayerComparison& layer = report_.layers[index];
    const Local local = run_alone(index, expected, Order::of_candidate);
    layer.local = local.difference;
    if (!local.is_wrong()) return false;
    // A part that the engine does not run by itself, though it runs in the whole, says nothing of the candidate.
    if (!local.failure.empty() && !reference_runs_alone(index, expected)) return false;
    if (local.found && is_reordered(index)) {
      const Difference straight = difference_from(index, expected, *local.found, Order::of_reference);
      layer.local = straight;
      if (straight.equal() || is_shuffled(index, expected, *local.found)) return false;
    }
    const std::vector<std::size_t> reordered = reordered_inputs(index);
    if (!reordered.empty()) {
      const auto is_unknown = [&](std::size_t input) { return !report_.layers[input].layout->is_known(); };
      const bool can_tell = std::none_of(reordered.begin(), reordered.end(), is_unknown);
      if (!can_tell || !run_alone(index, expected, Order::of_reference).is_wrong()) {
        return blame_the_order_of(reordered, inputs);
      }
    }
    conclude(index, why_wrong(index, expected, local), inputs);
    return true;
  }

  /// By itself too, in an order that cannot be repeated.
  [[nodiscard]] bool is_shuffled(std::size_t index, const TensorMap& expected, const TensorData& found) const {
    if (report_.layers[index].layout->is_known()) return false;
    const TensorData& reference = expected.at(rows_[index].match.reference->name);
    return find_rearrangement(reference, found, usual_tolerance(rows_[index], reference.type, found.type)).has_value();
  }

  [[nodiscard]] std::string why_wrong(std::size_t index, const TensorMap& expected, const Local& local) const {
    if (!local.failure.empty()) return local.failure;
    std::string why = local.difference.to_string();
    if (!local.found || !local.difference.incomparable.empty()) return why;
    const TensorData reference = in_order(index, expected.at(rows_[index].match.reference->name), Order::of_candidate);
    if (const auto scale = find_scale(reference, *local.found, report_.layers[index].tolerance)) {
      why = *scale + "; " + why;
    }
    return why;
  }

  static std::string wrong_order(const Rearrangement& layout) {
    const std::string_view neutral = to_string(Rearrangement::Kind::flattened);
    if (!layout.text.starts_with(neutral)) return layout.text;
    return "flattened in the wrong order" + layout.text.substr(neutral.size());
  }

  /// `own` is what the candidate's node is given; without it the reduced case has what the reference has there.
  void conclude(std::size_t index, std::string why, const TensorMap& inputs,
                const std::optional<TensorMap>& own = std::nullopt) {
    Divergence& first = report_.first.emplace();
    first.layer = index;
    first.why = std::move(why);
    const auto computing = [](const GraphRegion& region) {
      std::vector<const Node*> nodes;
      for (const Node* node : region.nodes) {
        if (!node->is("Constant")) nodes.push_back(node);
      }
      return nodes;
    };
    if (!options_.emulated) {
      const ModelPair models{.reference = reference_.model(),
                             .candidate = candidate_.model(),
                             .partner = [this](const Value& value) { return matcher_.reference_of(value); }};
      first.differences =
          part_differences(models, computing(rows_[index].reference_region), computing(rows_[index].candidate_region));
    }
    first.reduced = reduce(rows_[index], inputs, own);
  }

  /// Both parts by themselves. An input that only one of them has, or that they have in different forms, is a constant
  /// there.
  [[nodiscard]] ReducedCase reduce(const Row& row, const TensorMap& inputs, const std::optional<TensorMap>& own) const {
    const std::vector<const Value*> needed = needed_for(row);
    const TensorMap expected = reference_values(needed, inputs);
    const TensorMap feeds = own ? *own : candidate_feeds(row, expected, Order::of_candidate);
    ReducedCase reduced;
    reduced.reference = extract(reference_.model(), row.reference_region.inputs, {row.match.reference});
    reduced.candidate = extract(candidate_.model(), row.candidate_region.inputs, {row.match.candidate});
    const auto make_constant = [](Model& part, const std::string& name, const TensorData& tensor) {
      Value* value = part.graph().find_local(name);
      part.graph().set_is_input(*value, false);
      part.graph().set_initializer(*value, tensor);
    };
    std::set<std::string> shared;
    for (const Value* input : row.candidate_region.inputs) {
      const Value* partner = matcher_.reference_of(*input);
      const auto& others = row.reference_region.inputs;
      const TensorData& left = expected.at(partner->name);
      const TensorData& right = feeds.at(input->name);
      if (std::find(others.begin(), others.end(), partner) == others.end() || !left.same_as(right)) {
        make_constant(reduced.candidate, input->name, right);
        continue;
      }
      shared.insert(partner->name);
      reduced.inputs.emplace(partner->name, left);
    }
    for (const Value* input : row.reference_region.inputs) {
      if (!shared.contains(input->name)) make_constant(reduced.reference, input->name, expected.at(input->name));
    }
    rename_ends(row, shared, reduced.candidate);
    for (Model* part : {&reduced.reference, &reduced.candidate}) {
      part->graph().name = fmt::format("the part of {} that gives '{}'", part->source, row.match.candidate->name);
    }
    return reduced;
  }

  /// The candidate's part takes the reference's names, so that both take the same inputs.
  void rename_ends(const Row& row, const std::set<std::string>& shared, Model& part) const {
    for (const Value* input : row.candidate_region.inputs) {
      const std::string& name = matcher_.reference_of(*input)->name;
      if (name == input->name || !shared.contains(name)) continue;
      if (Value* other = part.graph().find_local(name)) part.graph().rename(*other, part.graph().unique_name(name));
      part.graph().rename(*part.graph().find_local(input->name), name);
    }
  }

  const runtime::Engine& engine_;
  const LayerOptions& options_;
  bool trust_names_;
  Scales scales_;
  PartialRuns reference_;
  PartialRuns candidate_;
  TensorMatcher matcher_;
  Refusals refused_by_reference_;
  Refusals refused_by_candidate_;
  bool quantized_;
  NarrowTypes reference_narrow_;
  NarrowTypes candidate_narrow_;
  std::vector<IoPair> inputs_;
  bool inputs_are_exchanged_ = false;  ///< The channels of one are in another place in the candidate.
  std::unique_ptr<runtime::CompiledModel> whole_;
  MadeUpInputs made_up_;
  std::vector<Row> rows_;
  std::unordered_map<const Value*, std::size_t> rows_by_candidate_;
  LayerReport report_;
};

bool is_number(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

/// The first tensor that differs is given by another node, and only its name says that it is the same: a number, or one
/// of many names that other nodes have.
bool may_be_misnamed(const LayerReport& report) {
  if (!report.first) return false;
  const auto by_other_node = [](const LayerComparison& layer) {
    return layer.matched_by == MatchedBy::name && !layer.is_output && layer.reference_node != layer.candidate_node;
  };
  const LayerComparison& first = report.layers[report.first->layer];
  if (!by_other_node(first)) return false;
  constexpr std::size_t quarter = 4;
  const auto many = static_cast<std::ptrdiff_t>(report.layers.size() / quarter);
  return is_number(first.candidate) || std::count_if(report.layers.begin(), report.layers.end(), by_other_node) > many;
}

/// Whether that tensor is in the candidate under a name that means another one in the reference, or nothing; and more
/// tensors agree where they are paired without their names.
bool explains_more(const LayerReport& other, const LayerReport& report, const Model& reference) {
  const LayerComparison& first = report.layers[report.first->layer];
  const bool is_misnamed = std::any_of(other.layers.begin(), other.layers.end(), [&](const LayerComparison& layer) {
    if (layer.reference != first.reference || layer.candidate == first.candidate || !layer.equal()) return false;
    const Value* namesake = reference.graph().find_local(layer.candidate);
    return (namesake != nullptr && namesake->producer != nullptr) ||
           (is_number(layer.candidate) && is_number(first.candidate));
  });
  const auto agreeing = [](const LayerReport& r) {
    return std::count_if(r.layers.begin(), r.layers.end(), [](const LayerComparison& layer) { return layer.equal(); });
  };
  return is_misnamed && agreeing(other) > agreeing(report);
}

}  // namespace

Tolerance layer_tolerance(ElementType reference, ElementType candidate, bool quantized, bool rounded) {
  if (!is_floating_point(reference) || !is_floating_point(candidate)) return Tolerance::of_network(reference, rounded);
  constexpr double of_quantized = 0.05;
  if (quantized) return {.relative = 0, .absolute = 0, .of_largest = of_quantized};
  const Tolerance left = Tolerance::of_network(reference);
  const Tolerance right = Tolerance::of_network(candidate);
  const Tolerance& coarser = left.relative > right.relative ? left : right;
  const auto narrow = [](ElementType type) { return bits_of(type) < bits_of(ElementType::f32); };
  if (!narrow(reference) && !narrow(candidate)) return coarser;
  constexpr double epsilons = 16;
  return {.relative = epsilons * coarser.of_largest, .absolute = 0, .of_largest = epsilons * coarser.of_largest};
}

Tolerance output_tolerance(ElementType reference, ElementType candidate, bool quantized, bool rounded) {
  constexpr double of_quantized = 20;
  const bool real = is_floating_point(reference) && is_floating_point(candidate);
  if (quantized && real) return {.snr_db = of_quantized};
  return layer_tolerance(reference, candidate, quantized, rounded);
}

std::optional<Tolerance> given_tolerance(std::optional<double> relative, std::optional<double> absolute,
                                         std::optional<double> snr_db, ElementType type) {
  if (relative || absolute) {
    return Tolerance{.relative = relative.value_or(0), .absolute = absolute.value_or(0), .of_largest = 0};
  }
  if (snr_db && is_floating_point(type)) return Tolerance{.snr_db = snr_db};
  return std::nullopt;
}

std::string why_tolerance(ElementType own, ElementType reference, ElementType candidate, bool quantized) {
  if (!is_floating_point(own)) return "";
  if (quantized) return "the candidate rounds to 8 bits, for which there is no fixed limit";
  if (candidate != own) return fmt::format("it is computed from {} in the candidate", to_string(candidate));
  if (reference != own) return fmt::format("it is computed from {} in the reference", to_string(reference));
  return "";
}

bool LayerReport::equal() const {
  return runs > 0 && problems.empty() && !failure &&
         std::none_of(layers.begin(), layers.end(),
                      [](const LayerComparison& layer) { return layer.is_output && !layer.equal(); });
}

bool LayerReport::nothing_compared() const {
  return runs > 0 && std::any_of(layers.begin(), layers.end(), [](const LayerComparison& layer) {
           return layer.verdict() == Verdict::nothing_compared;
         });
}

Verdict LayerReport::verdict() const {
  if (!equal()) return Verdict::different;
  return nothing_compared() ? Verdict::nothing_compared : Verdict::same;
}

const LayerComparison* LayerReport::first_different() const {
  const auto found =
      std::find_if(layers.begin(), layers.end(), [](const LayerComparison& layer) { return !layer.equal(); });
  return found == layers.end() ? nullptr : &*found;
}

LayerReport compare_layers(const runtime::Engine& engine, const Model& reference, const Model& candidate,
                           const LayerOptions& options) {
  if (!options.emulated) {
    LayerReport report = Layers(engine, reference, candidate, options, {}, true).run();
    if (!may_be_misnamed(report)) return report;
    LayerReport other = Layers(engine, reference, candidate, options, {}, false).run();
    return explains_more(other, report, reference) ? std::move(other) : std::move(report);
  }
  const Model opened = with_open_functions(candidate);
  Scales scales;
  if (*options.emulated == Precision::int8) {
    std::vector<std::string> problems;
    const auto pairs = pair_io(fed_inputs(reference), fed_inputs(candidate), "input", problems);
    TensorMap inputs;
    if (!options.data.empty()) {
      inputs = options.data.front();
    } else {
      const std::unique_ptr<runtime::CompiledModel> compiled = engine.compile(
          reference, {.kernels = options.reference_kernels, .extra_outputs = {}, .threads = options.threads});
      InputOptions made_up;
      made_up.dims = options.dims;
      made_up.shapes = options.shapes;
      made_up.ranges = options.ranges;
      TensorMap ignored;
      inputs = MadeUpInputs().inputs(*compiled, reference, made_up, ignored);
    }
    scales = int8_scales(engine, opened, inputs_for(pairs, inputs), options.candidate_kernels, options.threads,
                         options.memory);
  }
  const Model emulated = emulate(opened, *options.emulated, scales);
  LayerReport report = Layers(engine, with_open_functions(reference), emulated, options, std::move(scales), true).run();
  report.large_constants = large_constants(opened, *options.emulated);
  return report;
}

}  // namespace graft
