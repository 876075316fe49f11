// Finds where a difference begins: runs single nodes of the candidate on the reference's tensors until one is wrong.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/comparison_text.hpp"
#include "graft/error.hpp"
#include "onnx/extract.hpp"
#include "verify/localize/layer_state.hpp"
#include "verify/localize/node_differences.hpp"

namespace graft::verify {
namespace {

class DivergenceSearch {
 public:
  explicit DivergenceSearch(LayerState& state) : state_(state) {}

  void find_nan(const runtime::TensorMap& inputs) {
    const auto has_nan = [](const auto& input) { return range_of(input.second).nan != 0; };
    if (std::any_of(inputs.begin(), inputs.end(), has_nan)) return;
    for (std::size_t i = 0; i < state_.rows.size() && !state_.report.nan_begins; ++i) {
      if (makes_nan(i)) state_.report.nan_begins = i;
    }
  }

  void find_divergence(const runtime::TensorMap& inputs) {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < state_.rows.size(); ++i) {
      if (!state_.report.layers[i].equal() && can_be_run_alone(i)) open.push_back(i);
    }
    std::size_t next = 0;
    for (std::size_t group = 1; next < open.size(); group *= 2) {
      state_.tell("searching for the first divergence", next, open.size());
      const std::size_t end = std::min(open.size(), next + group);
      if (find_divergence_among(
              {open.begin() + static_cast<std::ptrdiff_t>(next), open.begin() + static_cast<std::ptrdiff_t>(end)},
              inputs))
        return;
      next = end;
    }
    for (const std::size_t index : open) {
      if (!is_suspect(index) || !state_.report.layers[index].is_output) continue;
      if (blame_the_order_of({index}, inputs)) return;
    }
  }

 private:
  /// Returns whether the nodes that compute the pair of tensors `index` (an index into state_.rows) compute NaN from
  /// inputs without NaN in one of the models, for example by the logarithm of a negative number or by 0 / 0.
  [[nodiscard]] bool makes_nan(std::size_t index) const {
    const auto& made_of = state_.rows[index].candidate_region.inputs;
    return state_.rows[index].candidate_nan + state_.rows[index].reference_nan != 0 &&
           std::all_of(made_of.begin(), made_of.end(), [&](const onnx::Value* input) {
             const auto row = state_.rows_by_candidate.find(input);
             return row == state_.rows_by_candidate.end() ||
                    (state_.rows[row->second].candidate_nan == 0 && state_.rows[row->second].reference_nan == 0);
           });
  }

  /// Reports rounding as the cause of NaN and returns true, if the candidate's nodes for pair `index` are correct on
  /// the reference's inputs but return more NaN than the reference on the candidate's own inputs. The two sets of
  /// inputs then differ only by rounding and lie at the edge of the operator's domain.
  bool blame_for_nan(std::size_t index, const runtime::TensorMap& inputs) {
    const LayerRow& row = state_.rows[index];
    if (state_.report.nan_begins != index || row.candidate_nan <= row.reference_nan) return false;
    conclude(index,
             fmt::format("correct; with its own inputs, which have no NaN, it returns {} NaN where the reference has "
                         "{}: rounding moves the inputs to the edge of the operator's domain",
                         row.candidate_nan, row.reference_nan),
             inputs, candidate_values(row.candidate_region.inputs, state_.for_candidate(inputs)));
    return true;
  }

  /// Returns whether the candidate's tensor of pair `index` has the reference's elements in another order although it
  /// has the same name. The order is correct only if the nodes that read the tensor expect it.
  [[nodiscard]] bool is_suspect(std::size_t index) const {
    const ComparedLayer& layer = state_.report.layers[index];
    return layer.layout.has_value() && !state_.rows[index].is_arranged && !layer.difference.equal();
  }

  /// Returns whether the candidate's tensor of pair `index` has the same dimensions as the reference's but another
  /// order of elements.
  [[nodiscard]] bool is_reordered(std::size_t index) const {
    return state_.report.layers[index].layout.has_value() && !state_.rows[index].has_other_dims;
  }

  [[nodiscard]] std::vector<std::size_t> reordered_inputs(std::size_t index) const {
    std::vector<std::size_t> reordered;
    for (const onnx::Value* input : state_.rows[index].candidate_region.inputs) {
      const auto found = state_.rows_by_candidate.find(input);
      if (found != state_.rows_by_candidate.end() && is_reordered(found->second)) reordered.push_back(found->second);
    }
    return reordered;
  }

  /// Goes back from the pairs of tensors in `waiting` (indices into state_.rows), whose elements have another order in
  /// the candidate, and searches for the node that causes this: its inputs have the reference's order. Reports the node
  /// and returns true, or returns false if there is no such node.
  bool blame_the_order_of(std::vector<std::size_t> waiting, const runtime::TensorMap& inputs) {
    std::set<std::size_t> known;
    while (!waiting.empty()) {
      const std::size_t index = waiting.back();
      waiting.pop_back();
      if (!known.insert(index).second) continue;
      const runtime::TensorMap expected = reference_values(needed_for(state_.rows[index]), inputs);
      if (run_alone(index, expected, Order::of_reference).is_wrong()) {
        conclude(index, wrong_order(*state_.report.layers[index].layout), inputs);
        state_.report.first->order = state_.report.layers[index].layout->kind;
        return true;
      }
      const std::vector<std::size_t> before = reordered_inputs(index);
      waiting.insert(waiting.end(), before.begin(), before.end());
    }
    return false;
  }

  bool find_divergence_among(const std::vector<std::size_t>& indices, const runtime::TensorMap& inputs) {
    std::size_t next = 0;
    while (next < indices.size()) {
      std::set<const onnx::Value*> needed;
      std::int64_t bytes = 0;
      const std::size_t begin = next;
      while (next < indices.size() && (next == begin || bytes < state_.options.memory)) {
        for (const onnx::Value* value : needed_for(state_.rows[indices[next]])) {
          if (needed.insert(value).second) bytes += state_.reference.bytes_of(*value);
        }
        ++next;
      }
      const runtime::TensorMap expected = reference_values({needed.begin(), needed.end()}, inputs);
      for (std::size_t i = begin; i < next; ++i) {
        if (is_wrong_by_itself(indices[i], expected, inputs) || blame_for_nan(indices[i], inputs)) return true;
      }
    }
    return false;
  }

  /// Returns whether the reference could return all tensors that are needed to run the nodes of pair `index` alone.
  [[nodiscard]] bool can_be_run_alone(std::size_t index) const {
    const std::vector<const onnx::Value*> needed = needed_for(state_.rows[index]);
    return std::none_of(needed.begin(), needed.end(),
                        [&](const onnx::Value* value) { return state_.refused_by_reference.contains(value); });
  }

  [[nodiscard]] std::vector<const onnx::Value*> needed_for(const LayerRow& row) const {
    std::vector<const onnx::Value*> needed{row.match.reference};
    for (const onnx::Value* input : row.candidate_region.inputs) {
      if (const onnx::Value* partner = state_.matcher.reference_of(*input)) needed.push_back(partner);
    }
    for (const onnx::Value* input : row.reference_region.inputs) needed.push_back(input);
    if (state_.may_judge_choice(row)) needed.push_back(row.choice->choice.scores);
    return needed;
  }

  [[nodiscard]] runtime::TensorMap reference_values(const std::vector<const onnx::Value*>& values,
                                                    const runtime::TensorMap& inputs) const {
    return values_of(state_.reference, values, inputs);
  }

  [[nodiscard]] runtime::TensorMap candidate_values(const std::vector<const onnx::Value*>& values,
                                                    const runtime::TensorMap& inputs) const {
    return values_of(state_.candidate, values, inputs);
  }

  static runtime::TensorMap values_of(const PartialRuns& model, const std::vector<const onnx::Value*>& values,
                                      const runtime::TensorMap& inputs) {
    std::vector<const onnx::Value*> computed;
    runtime::TensorMap result;
    for (const onnx::Value* value : values) {
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

  /// Selects the order of elements in which the candidate's nodes get their inputs when they run alone, and in which
  /// their result is expected.
  enum class Order : std::uint8_t {
    of_candidate,  ///< The tensors have the order of the candidate.
    of_reference,  ///< The tensors have the order of the reference, unless the dimensions differ.
  };

  /// Returns `reference`, the reference's tensor, as a correct candidate would have it for `value`: in its type and in
  /// the selected order.
  [[nodiscard]] onnx::TensorData as_in_candidate(const onnx::Value& value, const onnx::TensorData& reference,
                                                 Order wanted) const {
    if (value.is_input) return as_input(value, reference);
    const auto row = state_.rows_by_candidate.find(&value);
    if (row == state_.rows_by_candidate.end()) return in_type(reference, value.type);
    return in_type(in_order(row->second, reference, wanted), value.type);
  }

  [[nodiscard]] onnx::TensorData in_order(std::size_t index, const onnx::TensorData& reference, Order wanted) const {
    const auto& layout = state_.report.layers[index].layout;
    const bool as_it_is = !layout || !layout->is_known() || (wanted == Order::of_reference && is_reordered(index));
    return as_it_is ? reference : rearrange(reference, *layout);
  }

  [[nodiscard]] runtime::TensorMap candidate_feeds(const LayerRow& row, const runtime::TensorMap& expected,
                                                   Order order) const {
    runtime::TensorMap feeds;
    for (const onnx::Value* input : row.candidate_region.inputs) {
      const onnx::Value* partner = state_.matcher.reference_of(*input);
      if (partner == nullptr) {
        throw Error(fmt::format("{}: input '{}' of the candidate matches no input of the reference",
                                state_.candidate.model().source, input->name));
      }
      feeds.emplace(input->name, as_in_candidate(*input, expected.at(partner->name), order));
    }
    return feeds;
  }

  struct Local {
    Difference difference;
    std::string failure;
    std::optional<onnx::TensorData> found;
    [[nodiscard]] bool is_wrong() const { return !failure.empty() || !difference.equal(); }
  };

  /// Runs the candidate's nodes for pair `index` alone on the reference's tensors `expected`, and returns how their
  /// result differs from the reference's tensor. The inputs and the expected result have the order of elements `order`.
  [[nodiscard]] Local run_alone(std::size_t index, const runtime::TensorMap& expected, Order order) const {
    const LayerRow& row = state_.rows[index];
    Local local;
    try {
      const onnx::Model part = extract(state_.candidate.model(), row.candidate_region.inputs, {row.match.candidate});
      const runtime::TensorMap results = state_.candidate.run(part, candidate_feeds(row, expected, order));
      local.found = results.at(row.match.candidate->name);
      local.difference = difference_from(index, expected, *local.found, order);
      if (local.difference.is_choice && !local.difference.equal() && state_.may_judge_choice(row)) {
        const onnx::TensorData& reference = expected.at(row.match.reference->name);
        const onnx::TensorData& scores = row.choice->scores(expected, expected);
        static_cast<void>(
            judge_choice(*row.choice, scores, in_order(index, reference, order), *local.found, local.difference));
      }
      if (!local.difference.equal() && state_.may_have_floor(state_.report.layers[index].tolerance)) {
        local.difference = difference_beyond_noise(index, expected, *local.found, order);
      }
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::internal) throw;
      local.failure = error.what();
    }
    return local;
  }

  [[nodiscard]] Difference difference_from(std::size_t index, const runtime::TensorMap& expected,
                                           const onnx::TensorData& found, Order order) const {
    const onnx::TensorData& reference = expected.at(state_.rows[index].match.reference->name);
    return compare(in_order(index, reference, order), found, state_.report.layers[index].tolerance);
  }

  [[nodiscard]] bool reference_runs_alone(std::size_t index, const runtime::TensorMap& expected) const {
    const LayerRow& row = state_.rows[index];
    try {
      runtime::TensorMap feeds;
      for (const onnx::Value* input : row.reference_region.inputs) feeds.emplace(input->name, expected.at(input->name));
      static_cast<void>(state_.reference.run(
          extract(state_.reference.model(), row.reference_region.inputs, {row.match.reference}), feeds));
      return true;
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::internal) throw;
      return false;
    }
  }

  /// Returns the difference of `found` from the reference's tensor of pair `index`, with a noise floor that is measured
  /// by running the reference's nodes for the pair alone on the same inputs. `order` is the expected order of elements.
  [[nodiscard]] Difference difference_beyond_noise(std::size_t index, const runtime::TensorMap& expected,
                                                   const onnx::TensorData& found, Order order) const {
    const LayerRow& row = state_.rows[index];
    const std::string& name = row.match.reference->name;
    const onnx::Model part = extract(state_.reference.model(), row.reference_region.inputs, {row.match.reference});
    runtime::TensorMap feeds;
    for (const onnx::Value* input : row.reference_region.inputs) feeds.emplace(input->name, expected.at(input->name));
    const onnx::TensorData arranged = in_order(index, expected.at(name), order);
    NoiseFloor floor(state_.report.layers[index].tolerance);
    const auto arrange = [&](const onnx::TensorData& tensor) {
      return tensor.dims == expected.at(name).dims ? in_order(index, tensor, order) : tensor;
    };
    const auto add = [&](const runtime::TensorMap& still, const runtime::TensorMap& moved) {
      floor.add(arranged, arrange(still.at(name)), arrange(moved.at(name)));
    };
    state_.reference.run_noisy(state_.reference.engine(), part, feeds, add);
    return compare(arranged, found, state_.report.layers[index].tolerance, floor.runs() == 0 ? nullptr : &floor);
  }

  /// Returns whether the candidate's nodes for pair `index` compute a wrong result from the reference's inputs. If so,
  /// reports the divergence. The result may have the order of elements of the reference or that of the candidate's
  /// tensor: both count as correct, because only the nodes that read the tensor show which order they expect.
  bool is_wrong_by_itself(std::size_t index, const runtime::TensorMap& expected, const runtime::TensorMap& inputs) {
    ComparedLayer& layer = state_.report.layers[index];
    const Local local = run_alone(index, expected, Order::of_candidate);
    layer.local = local.difference;
    if (!local.is_wrong()) return false;
    // If the engine cannot run the reference's part alone either, the failure does not show a fault of the candidate.
    if (!local.failure.empty() && !reference_runs_alone(index, expected)) return false;
    if (local.found && is_reordered(index)) {
      const Difference straight = difference_from(index, expected, *local.found, Order::of_reference);
      layer.local = straight;
      if (straight.equal() || is_shuffled(index, expected, *local.found)) return false;
    }
    const std::vector<std::size_t> reordered = reordered_inputs(index);
    if (!reordered.empty()) {
      const auto is_unknown = [&](std::size_t input) { return !state_.report.layers[input].layout->is_known(); };
      const bool can_tell = std::none_of(reordered.begin(), reordered.end(), is_unknown);
      if (!can_tell || !run_alone(index, expected, Order::of_reference).is_wrong()) {
        return blame_the_order_of(reordered, inputs);
      }
    }
    conclude(index, why_wrong(index, expected, local), inputs);
    return true;
  }

  /// Returns whether `found`, the result of the nodes for pair `index` run alone, has the reference's values in an
  /// order that is not a known layout.
  [[nodiscard]] bool is_shuffled(std::size_t index, const runtime::TensorMap& expected,
                                 const onnx::TensorData& found) const {
    if (state_.report.layers[index].layout->is_known()) return false;
    const onnx::TensorData& reference = expected.at(state_.rows[index].match.reference->name);
    return find_rearrangement(reference, found, state_.usual_tolerance(state_.rows[index], reference.type, found.type))
        .has_value();
  }

  [[nodiscard]] std::string why_wrong(std::size_t index, const runtime::TensorMap& expected, const Local& local) const {
    if (!local.failure.empty()) return local.failure;
    std::string why = difference_text(local.difference);
    if (!local.found || !local.difference.incomparable.empty()) return why;
    const onnx::TensorData reference =
        in_order(index, expected.at(state_.rows[index].match.reference->name), Order::of_candidate);
    if (const auto scale = find_scale(reference, *local.found, state_.report.layers[index].tolerance)) {
      why = *scale + "; " + why;
    }
    return why;
  }

  static std::string wrong_order(const Rearrangement& layout) {
    const std::string_view neutral = to_string(Rearrangement::Kind::flattened);
    if (!layout.text.starts_with(neutral)) return layout.text;
    return "flattened in the wrong order" + layout.text.substr(neutral.size());
  }

  /// Records pair `index` as the first divergence, with the reason `why`, and extracts the reduced case. `own` are the
  /// inputs of the candidate's nodes in the reduced case; if it is not set, they are the reference's tensors.
  void conclude(std::size_t index, std::string why, const runtime::TensorMap& inputs,
                const std::optional<runtime::TensorMap>& own = std::nullopt) {
    Divergence& first = state_.report.first.emplace();
    const ComparedLayer& layer = state_.report.layers[index];
    first.layer = index;
    first.reference = layer.reference.name;
    first.candidate = layer.candidate.name;
    first.op = layer.op;
    first.reference_node = layer.reference_node;
    first.candidate_node = layer.candidate_node;
    first.reference_nodes = layer.reference_nodes;
    first.candidate_nodes = layer.candidate_nodes;
    first.why = std::move(why);
    const auto computing = [](const onnx::GraphRegion& region) {
      std::vector<const onnx::Node*> nodes;
      for (const onnx::Node* node : region.nodes) {
        if (!node->is("Constant")) nodes.push_back(node);
      }
      return nodes;
    };
    if (!state_.emulated) {
      const ModelPair models{
          .reference = state_.reference.model(),
          .candidate = state_.candidate.model(),
          .partner = [this](const onnx::Value& value) { return state_.matcher.reference_of(value); }};
      first.differences = part_differences(models, computing(state_.rows[index].reference_region),
                                           computing(state_.rows[index].candidate_region));
    }
    state_.report.reduced = reduce(state_.rows[index], inputs, own);
  }

  /// Returns the nodes that compute the tensors of `row` in both models as two models with common inputs. An input that
  /// only one of them has, or that differs between them, becomes a constant. The candidate's inputs are `own`, or the
  /// reference's tensors if `own` is not set.
  [[nodiscard]] ReducedCase reduce(const LayerRow& row, const runtime::TensorMap& inputs,
                                   const std::optional<runtime::TensorMap>& own) const {
    const std::vector<const onnx::Value*> needed = needed_for(row);
    const runtime::TensorMap expected = reference_values(needed, inputs);
    const runtime::TensorMap feeds = own ? *own : candidate_feeds(row, expected, Order::of_candidate);
    ReducedCase reduced;
    reduced.reference = extract(state_.reference.model(), row.reference_region.inputs, {row.match.reference});
    reduced.candidate = extract(state_.candidate.model(), row.candidate_region.inputs, {row.match.candidate});
    const auto make_constant = [](onnx::Model& part, const std::string& name, const onnx::TensorData& tensor) {
      onnx::Value* value = part.graph().find_local(name);
      part.graph().set_is_input(*value, false);
      part.graph().set_initializer(*value, tensor);
    };
    std::set<std::string> shared;
    for (const onnx::Value* input : row.candidate_region.inputs) {
      const onnx::Value* partner = state_.matcher.reference_of(*input);
      const auto& others = row.reference_region.inputs;
      const onnx::TensorData& left = expected.at(partner->name);
      const onnx::TensorData& right = feeds.at(input->name);
      if (std::find(others.begin(), others.end(), partner) == others.end() || !left.same_as(right)) {
        make_constant(reduced.candidate, input->name, right);
        continue;
      }
      shared.insert(partner->name);
      reduced.inputs.emplace(partner->name, left);
    }
    for (const onnx::Value* input : row.reference_region.inputs) {
      if (!shared.contains(input->name)) make_constant(reduced.reference, input->name, expected.at(input->name));
    }
    rename_ends(row, shared, reduced.candidate);
    for (onnx::Model* part : {&reduced.reference, &reduced.candidate}) {
      part->graph().name = fmt::format("the part of {} that computes '{}'", part->source, row.match.candidate->name);
    }
    return reduced;
  }

  /// Renames the inputs of the candidate's extracted model `part` that are in `shared` to the reference's names, so
  /// that both extracted models have the same inputs.
  void rename_ends(const LayerRow& row, const std::set<std::string>& shared, onnx::Model& part) const {
    for (const onnx::Value* input : row.candidate_region.inputs) {
      const std::string& name = state_.matcher.reference_of(*input)->name;
      if (name == input->name || !shared.contains(name)) continue;
      if (onnx::Value* other = part.graph().find_local(name))
        part.graph().rename(*other, part.graph().unique_name(name));
      part.graph().rename(*part.graph().find_local(input->name), name);
    }
  }

  LayerState& state_;
};

}  // namespace

void find_nan(LayerState& state, const runtime::TensorMap& inputs) { DivergenceSearch(state).find_nan(inputs); }

void find_divergence(LayerState& state, const runtime::TensorMap& inputs) {
  DivergenceSearch(state).find_divergence(inputs);
}

}  // namespace graft::verify
