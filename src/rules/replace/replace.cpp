// Replaces nodes by one operator: the nodes of a selection (`replace`) or of a pattern (`match`).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "graft/error.hpp"
#include "onnx/text.hpp"
#include "rules/kinds.hpp"
#include "rules/replace/new_node.hpp"

namespace graft::rules {
namespace {

bool has_function(const onnx::Model& model, const RuleOperator& with) {
  return std::any_of(model.functions.begin(), model.functions.end(), [&](const auto& entry) {
    return entry.first.domain == with.domain && entry.first.name == with.op_type;
  });
}

/// Returns why the operator cannot replace the nodes of `region`, as far as this is known before the proof: it would be
/// a plugin (`is_plugin`) where no plugin can run, or it does not accept the types of the inputs. Otherwise returns an
/// empty string.
std::string refusal(RuleRun& run, const Region& region, const NewNode& node, bool is_plugin) {
  if (is_plugin) {
    if (std::string text = run.rewriter.refusal_of_plugin_in(*region.graph); !text.empty()) return text;
  }
  if (node.op == nullptr || node.int8 || !are_types_known(node, *region.graph)) return "";
  try {
    static_cast<void>(checked_output_dtypes(node, find_input_facts(node, *region.graph).dtypes));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void replace(RuleRun& run, const Region& region) {
  if (region.outputs.empty()) {
    run.outcome.notes.push_back(
        fmt::format("{}: the rule was not applied, because no node reads the result", region.name));
    return;
  }
  NewNode node = plan_node(run.rule, region);
  const bool is_foreign = node.with.is_foreign();
  const bool is_unknown = is_foreign && !has_function(run.rewriter.model(), node.with);
  if (is_unknown && run.rule.prove) {
    fail_at(run.rule.place,
            fmt::format("{} cannot run on the CPU, and the model has no function of that name, so this rule cannot be "
                        "proven; to apply the rule without a proof, add prove: false and a `reason` to the rule",
                        node.with.to_string()));
  }
  if (const std::string why = refusal(run, region, node, node.with.graft != nullptr || is_unknown); !why.empty()) {
    run.outcome.notes.push_back(fmt::format("{}: the rule was not applied: {}", region.name, why));
    return;
  }
  if (node.with.graft != nullptr || is_foreign) {
    node.note = fmt::format("requested by {}", run.rule.place.to_string());
  }
  apply(run, region, propose_node(run.rule, region, node));
}

}  // namespace

void replace_selected(RuleRun& run) {
  for (const Region& region : select_regions(run)) replace(run, region);
}

void replace_matched(RuleRun& run) {
  const onnx::Pattern& pattern = *run.rule.pattern;
  const std::vector<onnx::Graph*> graphs = run.rewriter.graphs();
  for (onnx::Graph* graph : graphs) {
    const onnx::MatchResult found = find_matches(pattern, *graph);
    for (const onnx::Match& match : found.matches) {
      ++run.outcome.matched;
      replace(run, region_of(match, *graph));
    }
  }
  if (run.outcome.matched != 0) return;
  if (const auto nearest = nearest_match(pattern, graphs)) {
    run.outcome.notes.push_back(fmt::format("nearest: at {}, {} of {} nodes matched: {}",
                                            onnx::describe(*nearest->node), nearest->matched_nodes,
                                            nearest->pattern_nodes, nearest->reason));
  } else {
    run.outcome.notes.push_back(fmt::format("the pattern ends with {}, but the model has no such node",
                                            fmt::join(pattern.root_types(), " or ")));
  }
}

}  // namespace graft::rules
