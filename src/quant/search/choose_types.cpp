// Decides by the ranges of tensors first (measure_tensors.hpp), then by trials (type_trials.hpp) of the nodes that lose
// most (losing_nodes.hpp).
#include "quant/search/choose_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/comparison_text.hpp"
#include "quant/plan/node_patterns.hpp"
#include "quant/search/losing_nodes.hpp"
#include "quant/search/measure_tensors.hpp"
#include "quant/search/type_trials.hpp"
#include "verify/localize/layers.hpp"

namespace graft::quant {
namespace {

/// A set of nodes kept in f32, and the errors that the network's outputs have with this set.
struct Choice {
  KeptNodes kept;
  std::vector<verify::OutputFigures> outputs;
  [[nodiscard]] verify::Score score() const { return verify::score_of(outputs); }
};

Choice try_choice(TypeTrials& trials, KeptNodes kept) {
  std::vector<verify::OutputFigures> outputs = trials.try_types(kept);
  return {std::move(kept), std::move(outputs)};
}

/// Returns the nodes that the options keep in f32: those selected by `keep` and `only`, and those in `kept`.
KeptNodes requested_nodes(const onnx::Model& prepared, const ChooseOptions& options) {
  KeptNodes kept;
  const auto by_patterns = kept_by_patterns(prepared, options.keep, options.only,
                                            [](const onnx::Node& node) { return !works_in_any_type(node); });
  for (const auto& [key, reason] : by_patterns) kept.emplace(key, KeptNode{WhyKept::asked, reason});
  for (const auto& [key, reason] : options.kept) kept.emplace(key, KeptNode{WhyKept::asked, reason});
  return kept;
}

/// Decides whether the tensors in `masks`, whose large negative numbers become minus infinity in the narrow type (f16
/// or bf16), stay in f32. They do only if an output misses the limit `wanted_db` (as it does if a whole row is masked)
/// and keeping all of them in f32 improves the outputs. In that case updates `choice`, and returns no notes. Otherwise
/// returns one note for each mask that is converted.
std::vector<std::string> decide_masks(TypeTrials& trials, const std::vector<MaskTensor>& masks, double wanted_db,
                                      Choice& choice) {
  if (masks.empty()) return {};
  if (!choice.score().meets(wanted_db)) {
    KeptNodes kept = choice.kept;
    for (const auto& [value, what] : masks) keep_makers_and_readers(kept, *value, WhyKept::overflow, what);
    Choice with_masks = try_choice(trials, std::move(kept));
    if (with_masks.score().is_better_than(choice.score())) {
      choice = std::move(with_masks);
      return {};
    }
  }
  std::vector<std::string> notes;
  for (const auto& [value, what] : masks) {
    notes.push_back(
        fmt::format("'{}' {}: the value becomes minus infinity, which a Softmax treats like the value itself; if a row "
                    "contains only such values, the Softmax returns NaN",
                    value->name, what));
  }
  return notes;
}

/// Tries to improve the outputs by keeping the nodes in `losing` in f32, with the nodes up to `furthest` steps before
/// them, and returns whether it improved them. All nodes are kept at once first, because each trial compiles the whole
/// network; then bisection finds the smallest number of nodes with the same effect, and `choice` is updated. If
/// `wholly`, only a result that meets the limit counts.
bool improve_by(TypeTrials& trials, const std::vector<NodeLoss>& losing, std::size_t furthest, double wanted_db,
                Choice& choice, bool wholly = false) {
  const auto keep_first = [&](std::size_t count, std::size_t steps) {
    return keep_losing(choice.kept, losing, count, steps, trials.options().precision);
  };
  const verify::Score before = choice.score();
  std::size_t tried = choice.kept.size();
  for (std::size_t steps = 0; steps < furthest && !trials.is_exhausted(); ++steps) {
    KeptNodes kept = keep_first(losing.size(), steps);
    if (kept.size() == tried) continue;
    tried = kept.size();
    Choice best = try_choice(trials, std::move(kept));
    const verify::Score all = best.score();
    if (!all.is_better_than(before) || (wholly && !all.meets(wanted_db))) continue;
    std::size_t lowest = 1;
    std::size_t highest = losing.size();
    while (lowest < highest && !trials.is_exhausted()) {
      const std::size_t middle = lowest + (highest - lowest) / 2;
      Choice fewer = try_choice(trials, keep_first(middle, steps));
      const verify::Score score = fewer.score();
      const bool as_good =
          all.meets(wanted_db) ? score.meets(wanted_db) : score.is_better_than(before) && !all.is_better_than(score);
      if (as_good) {
        highest = middle;
        best = std::move(fewer);
      } else {
        lowest = middle + 1;
      }
    }
    choice = std::move(best);
    return true;
  }
  return false;
}

/// Keeps further nodes in f32 if that improves the outputs, updates `choice`, and returns whether it did. First tries
/// the nodes that lose at least 3 dB each, then all nodes that lose at least 0.1 dB, as in a long chain. The second set
/// is accepted only if the outputs then meet the limit and at least one node remains in the narrow type (f16 or bf16).
bool improve(TypeTrials& trials, const MeasuredTensors& measured, double wanted_db, Choice& choice) {
  constexpr std::size_t furthest = 3;
  constexpr double anything = 0.1;  // decibels
  const std::vector<NodeLoss> all = find_losses(trials, measured, choice.kept);
  const auto at_least = [&](double decibels) {
    std::vector<NodeLoss> losing = all;
    std::erase_if(losing, [&](const NodeLoss& loss) { return loss.lost_db < decibels; });
    return losing;
  };
  const std::vector<NodeLoss> much = at_least(worth_looking_at);
  if (improve_by(trials, much, furthest, wanted_db, choice)) return true;
  const std::vector<NodeLoss> little = at_least(anything);
  if (little.size() == much.size()) return false;
  Choice better = choice;
  if (!improve_by(trials, little, 1, wanted_db, better, true)) return false;
  const std::vector<TypedNode> nodes = trials.typed_with(better.kept).nodes;
  const bool leaves_some =
      std::any_of(nodes.begin(), nodes.end(), [](const TypedNode& node) { return node.type == NodeType::narrow; });
  if (leaves_some) choice = std::move(better);
  return leaves_some;
}

/// Changes nodes that `choice` keeps in f32 because of their loss back to the narrow type (f16 or bf16), as long as the
/// outputs meet the limit `wanted_db`. Tries half of the nodes at a time first, then smaller groups.
void give_back(TypeTrials& trials, double wanted_db, Choice& choice) {
  std::vector<std::string> keys;
  for (const auto& [key, node] : choice.kept) {
    if (node.why == WhyKept::loss) keys.push_back(key);
  }
  for (std::size_t count = keys.size() / 2; count != 0; count /= 2) {
    for (std::size_t begin = 0; begin < keys.size() && keys.size() > 1;) {
      if (trials.is_exhausted()) return;
      const auto first = keys.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last = keys.begin() + static_cast<std::ptrdiff_t>(std::min(begin + count, keys.size()));
      KeptNodes kept = choice.kept;
      std::for_each(first, last, [&](const std::string& key) { kept.erase(key); });
      Choice fewer = try_choice(trials, std::move(kept));
      if (!fewer.score().meets(wanted_db)) {
        begin += count;
        continue;
      }
      choice = std::move(fewer);
      keys.erase(first, last);
    }
  }
}

/// Returns the nodes of the typed model, each with the reason for its type and the range and rounding error of its
/// first output.
std::vector<ChosenNode> describe_nodes(const TypedModel& typed, const KeptNodes& kept,
                                       const MeasuredTensors& measured) {
  std::vector<ChosenNode> nodes;
  for (const TypedNode& node : typed.nodes) {
    ChosenNode chosen;
    chosen.node = node;
    if (node.type == NodeType::kept) {
      const auto found = kept.find(node.node.id);
      chosen.why = node.by_form || found == kept.end() ? WhyKept::form : found->second.why;
    }
    if (const verify::TypeEffect* effect = measured.effect(node.node.id)) {
      chosen.has_figures = true;
      chosen.range = effect->range;
      chosen.rounding = effect->rounding;
    }
    nodes.push_back(std::move(chosen));
  }
  return nodes;
}

report::NodeRole role_of(NodeType type) {
  switch (type) {
    case NodeType::narrow: return report::NodeRole::computes;
    case NodeType::kept: return report::NodeRole::kept;
    case NodeType::follows: return report::NodeRole::follows;
    case NodeType::none: break;
  }
  return report::NodeRole::none;
}

/// Returns, as a clause for the report, why a node has its type. For a node in f16 or bf16 this is the range of its
/// first output and the error of rounding it.
std::string explanation(const ChosenNode& node) {
  switch (node.node.type) {
    case NodeType::kept: return node.node.reason;
    case NodeType::follows: return "all its neighbors are in f32";
    case NodeType::none:
      if (node.node.before == onnx::ElementType::f64) return "it computes in f64, which is not converted";
      return node.node.before ? fmt::format("it is already in {}", to_string(*node.node.before))
                              : "it computes nothing in f32";
    case NodeType::narrow: break;
  }
  if (!node.has_figures) return "it reads its inputs as they are, and has no f32 output";
  const std::string lost = report::rounding_text(node.rounding);
  return fmt::format("{}{}{}", report::range_text(node.range),
                     node.rounding.snr_db ? fmt::format(", {:.0f} dB after rounding", *node.rounding.snr_db) : "",
                     lost.empty() ? "" : ", " + lost);
}

}  // namespace

double limit_of(report::Precision precision) { return verify::narrow_limit_db(element_type_of(precision)).value(); }

std::vector<const ChosenNode*> ChosenTypes::kept() const {
  std::vector<const ChosenNode*> found;
  for (const ChosenNode& node : nodes) {
    if (node.why && *node.why != WhyKept::form) found.push_back(&node);
  }
  return found;
}

ChosenTypes choose_types(const runtime::Engine& engine, const onnx::Model& model, const ChooseOptions& options) {
  TypeTrials trials(engine, model, options);
  ChosenTypes result;
  result.limit_db = options.limit_db.value_or(limit_of(options.precision));
  const double wanted_db = result.limit_db + options.margin_db;
  Choice choice{.kept = requested_nodes(trials.prepared(), options), .outputs = {}};
  const std::size_t requested = choice.kept.size();
  result.inputs = trials.run_reference();
  result.runs = trials.inputs().size();
  result.plain = trials.try_types(choice.kept);
  const MeasuredTensors measured = measure_tensors(trials, choice.kept);
  const std::vector<MaskTensor> masks = keep_overflowing(choice.kept, measured, trials.graph(), options.precision);
  keep_sums(choice.kept, measured, options.precision);
  choice.outputs = choice.kept.size() == requested ? result.plain : trials.try_types(choice.kept);
  result.notes = decide_masks(trials, masks, wanted_db, choice);
  const std::size_t before = choice.kept.size();
  while (!choice.score().meets(wanted_db) && !trials.is_exhausted() && improve(trials, measured, wanted_db, choice)) {
  }
  result.met = choice.score().meets(result.limit_db);
  if (choice.score().meets(wanted_db) && choice.kept.size() != before) give_back(trials, wanted_db, choice);
  result.typed = trials.typed_with(choice.kept);
  if (auto note = note_on_f64(trials.prepared(), to_string(options.precision))) {
    result.notes.push_back(std::move(*note));
  }
  result.nodes = describe_nodes(result.typed, choice.kept, measured);
  result.outputs = std::move(choice.outputs);
  result.trials = trials.count();
  return result;
}

std::vector<QuantizedNode> ChosenTypes::reported_nodes(report::Precision precision) const {
  std::vector<QuantizedNode> reported;
  for (const ChosenNode& node : nodes) {
    reported.push_back({.node = node.node.node,
                        .role = role_of(node.node.type),
                        .type = type_name(node.node, precision),
                        .why = node.why,
                        .explanation = explanation(node),
                        .has_figures = node.has_figures,
                        .lowest = node.range.lowest,
                        .highest = node.range.highest,
                        .overflow = node.rounding.overflow,
                        .underflow = node.rounding.underflow,
                        .subnormal = node.rounding.subnormal,
                        .rounding_snr_db = node.rounding.snr_db});
  }
  return reported;
}

}  // namespace graft::quant
