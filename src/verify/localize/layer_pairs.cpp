// Pairs the tensors of both models by their position in the graph, by their names, and the remaining ones by their
// numbers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <utility>

#include "graft/error.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/operator_node.hpp"
#include "verify/inputs/random_values.hpp"
#include "verify/localize/layer_state.hpp"

namespace graft::verify {
namespace {

bool is_close(double a, double b, double scale) {
  constexpr double relative = 1e-4;
  return std::abs(a - b) <= relative * scale;
}

/// Returns whether two tensors may have the same elements in any order, judging by their number, extremes, sums and
/// sums of squares.
bool same_numbers(const TensorRange& a, const TensorRange& b) {
  if (a.count != b.count || a.nan != b.nan || a.infinite != b.infinite || !a.lowest || !b.lowest) return false;
  const double largest = std::max(a.largest(), b.largest());
  return is_close(*a.lowest, *b.lowest, largest) && is_close(*a.highest, *b.highest, largest) &&
         is_close(a.squares, b.squares, std::max(a.squares, b.squares)) &&
         is_close(a.sum, b.sum, std::sqrt(a.squares * static_cast<double>(a.count)));
}

/// Returns whether a range is specific enough to identify a tensor: at least four elements that are not all equal.
bool tells_apart(const TensorRange& range) {
  constexpr std::int64_t few = 4;
  return range.count >= few && range.lowest && *range.lowest != *range.highest;
}

class LayerPairing {
 public:
  explicit LayerPairing(LayerState& state) : state_(state) {}

  void run(const runtime::TensorMap& inputs, const runtime::TensorMap& renamed, bool trust_names) {
    for (const IoPair& pair : state_.inputs) {
      const auto found = inputs.find(pair.reference->name);
      if (found == inputs.end()) {
        throw Error(fmt::format("{}: input '{}' has no value; provide one", state_.reference.model().source,
                                pair.reference->name));
      }
      const auto order = order_of_input(*pair.candidate, found->second.dims);
      state_.inputs_are_exchanged = state_.inputs_are_exchanged || order.has_value();
      state_.report.inputs.push_back(fmt::format(
          "{}: {}{}", pair.reference->name, found->second.type_and_shape(),
          order ? fmt::format(", in the candidate [{}]", fmt::join(order->final_dims, ", ")) : std::string()));
      state_.matcher.add(*pair.reference, *pair.candidate, MatchedBy::input);
    }
    state_.reference.infer(inputs);
    state_.candidate.infer(renamed);
    state_.reference_narrow = narrow_types(state_.reference.model());
    state_.candidate_narrow = narrow_types(state_.candidate.model());
    reference_random_ = random_values(state_.reference.model());
    candidate_random_ = random_values(state_.candidate.model());
    std::vector<std::string> alone;
    for (const IoPair& pair :
         pair_io(all_outputs(state_.reference.model()), all_outputs(state_.candidate.model()), "output", alone)) {
      if (pair.reference->producer == nullptr || pair.candidate->producer == nullptr) continue;
      if (state_.matcher.candidate_of(*pair.reference) != nullptr ||
          state_.matcher.reference_of(*pair.candidate) != nullptr)
        continue;
      const bool by_name = pair.reference->name == pair.candidate->name;
      state_.matcher.add(*pair.reference, *pair.candidate, by_name ? MatchedBy::name : MatchedBy::output);
    }
    state_.matcher.match(trust_names);
    state_.reference.measure_sizes(tensors_of(state_.reference.model()), inputs);
    state_.candidate.measure_sizes(tensors_of(state_.candidate.model()), renamed);
    match_values(inputs, renamed);
    find_unmatched_outputs();
    state_.report.reference_tensors = tensors_of(state_.reference.model()).size();
    state_.report.candidate_tensors = tensors_of(state_.candidate.model()).size();
    for (const TensorMatch& match : state_.matcher.matches()) {
      if (match.how != MatchedBy::input) add_row(match);
    }
  }

 private:
  /// Adds a problem to the report for each output of either model that has no partner. A partner may be an inner tensor
  /// of the other model.
  void find_unmatched_outputs() {
    for (const onnx::Value* output : state_.reference.model().graph().outputs()) {
      if (output->producer != nullptr && !output->constant() && state_.matcher.candidate_of(*output) == nullptr)
        state_.report.problems.push_back(fmt::format("the candidate has no output '{}'", output->name));
    }
    for (const onnx::Value* output : state_.candidate.model().graph().outputs()) {
      if (output->producer != nullptr && !output->constant() && state_.matcher.reference_of(*output) == nullptr)
        state_.report.problems.push_back(fmt::format("the reference has no output '{}'", output->name));
    }
  }

  /// Pairs the remaining tensors of both models whose elements agree in one run. `inputs` are the inputs of the
  /// reference, and `renamed` the same inputs under the candidate's names. Tensors with wrong elements cannot be paired
  /// in this way.
  void match_values(const runtime::TensorMap& inputs, const runtime::TensorMap& renamed) {
    std::vector<const onnx::Value*> left = state_.matcher.unmatched_of_reference();
    std::vector<const onnx::Value*> right = state_.matcher.unmatched_of_candidate();
    std::erase_if(left, [&](const onnx::Value* value) { return reference_random_.contains(value); });
    std::erase_if(right, [&](const onnx::Value* value) { return candidate_random_.contains(value); });
    if (left.empty() || right.empty()) return;
    const auto expected = state_.reference.ranges(left, inputs, state_.options.memory, tell_of("reference"),
                                                  &state_.refused_by_reference);
    const auto found = candidate_ranges(right, renamed);
    for (const onnx::Value* tensor : right) {
      const auto range = found.find(tensor);
      if (range == found.end() || !tells_apart(range->second)) continue;
      for (const onnx::Value* other : left) {
        const auto numbers = expected.find(other);
        if (numbers == expected.end() || state_.matcher.candidate_of(*other) != nullptr) continue;
        if (!same_numbers(numbers->second, range->second)) continue;
        state_.matcher.add(*other, *tensor, MatchedBy::values);
        break;
      }
    }
  }

  [[nodiscard]] std::unordered_map<const onnx::Value*, TensorRange> candidate_ranges(
      const std::vector<const onnx::Value*>& values, const runtime::TensorMap& inputs) {
    try {
      return state_.candidate.ranges(values, inputs, state_.options.memory, tell_of("candidate"),
                                     &state_.refused_by_candidate);
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::internal) throw;
      throw CandidateFails{error.what()};
    }
  }

  void add_row(const TensorMatch& match) {
    LayerRow& row = state_.rows.emplace_back();
    row.match = match;
    state_.rows_by_candidate.emplace(match.candidate, state_.rows.size() - 1);
    ComparedLayer& layer = state_.report.layers.emplace_back();
    layer.reference.name = match.reference->name;
    layer.candidate.name = match.candidate->name;
    layer.matched_by = match.how;
    const onnx::Node& node = computing_node(*match.candidate->producer);
    const onnx::OperatorMatch graft_operator = find_operator_for(node);
    layer.op = graft_operator ? std::string(graft_operator.type->name) : node.op_type;
    layer.reference_node = ref_of(*match.reference->producer);
    layer.candidate_node = ref_of(node);
    layer.is_declared_empty = is_declared_empty(*match.reference);
    layer.is_output = match.candidate->is_output() || match.reference->is_output();
    layer.not_compared = why_not_compared(reference_random_, *match.reference, candidate_random_, *match.candidate);
    layer.is_random = !layer.not_compared.empty();
    if (layer.is_random) check_random_output(match);
    row.reference_region = onnx::region_before(
        {match.reference}, [&](const onnx::Value& value) { return state_.matcher.candidate_of(value) != nullptr; });
    row.candidate_region = onnx::region_before(
        {match.candidate}, [&](const onnx::Value& value) { return state_.matcher.reference_of(value) != nullptr; });
    if (!state_.options.relative && !state_.options.absolute) {
      row.choice = judged_choice(state_.reference.model(), *match.reference, state_.reference_narrow,
                                 state_.candidate_narrow, *match.candidate, state_.quantized);
    }
    for (const onnx::Node* node : row.reference_region.nodes) layer.reference_nodes.push_back(ref_of(*node));
    for (const onnx::Node* node : row.candidate_region.nodes) layer.candidate_nodes.push_back(ref_of(*node));
  }

  /// Adds a problem to the report if the types or ranks of an output that depends on random numbers differ. Its
  /// elements are not compared.
  void check_random_output(const TensorMatch& match) {
    const auto& [reference, candidate, how] = match;
    if (!reference->is_output() || !candidate->is_output() || !reference->type || !candidate->type) return;
    if (reference->type == candidate->type && reference->rank() == candidate->rank()) return;
    state_.report.problems.push_back(
        fmt::format("output '{}' is {} of rank {} in the reference and {} of rank {} in "
                    "the candidate",
                    reference->name, to_string(*reference->type), rank_text(*reference), to_string(*candidate->type),
                    rank_text(*candidate)));
  }

  [[nodiscard]] static std::string rank_text(const onnx::Value& value) {
    return value.rank() ? std::to_string(*value.rank()) : "any";
  }

  [[nodiscard]] std::function<void(std::size_t, std::size_t)> tell_of(std::string which) const {
    return [this, which = std::move(which)](std::size_t done, std::size_t total) {
      state_.tell(fmt::format("matching tensors of the {} by their values", which), done, total);
    };
  }

  LayerState& state_;
  RandomValues reference_random_;
  RandomValues candidate_random_;
};

}  // namespace

void pair_layers(LayerState& state, const runtime::TensorMap& inputs, const runtime::TensorMap& renamed,
                 bool trust_names) {
  LayerPairing(state).run(inputs, renamed, trust_names);
}

}  // namespace graft::verify
