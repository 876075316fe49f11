#include "rules/rule_passes.hpp"

#include <memory>
#include <utility>

#include "passes/pipeline.hpp"
#include "rules/kinds.hpp"
#include "rules/library_fusions.hpp"
#include "rules/rule_run.hpp"

namespace graft::rules {
namespace {

void apply_kind(RuleRun& run) {
  using Kind = Rule::Kind;
  switch (run.rule.kind) {
    case Kind::replace: replace_selected(run); return;
    case Kind::match: replace_matched(run); return;
    case Kind::remove: remove_nodes(run); return;
    case Kind::set: set_attributes(run); return;
    case Kind::constant: set_constants(run); return;
    case Kind::rename: rename_tensors(run); return;
    case Kind::rename_nodes: rename_nodes(run); return;
    case Kind::shape: set_shapes(run); return;
    case Kind::dtype: set_types(run); return;
    case Kind::fix: fix_dimensions(run); return;
    case Kind::dynamic_batch: make_batch_dynamic(run); return;
    case Kind::add_outputs: add_outputs(run); return;
    case Kind::drop_outputs: drop_outputs(run); return;
    case Kind::cut: cut(run); return;
  }
}

void apply_rules(Rewriter& rewriter, const std::vector<Rule>& rules, Rule::Stage stage) {
  for (const Rule& rule : rules) {
    if (rule.stage != stage) continue;
    RuleRun run(rewriter, rule);
    apply_kind(run);
    rewriter.record_rule(std::move(run.outcome));
    if (stage != Rule::Stage::interface) rewriter.end();  // removes the nodes that the rule replaced
  }
}

std::map<std::string, Shape, std::less<>> shapes_of(const std::vector<Rule>& rules) {
  std::map<std::string, Shape, std::less<>> result;
  for (const Rule& rule : rules) {
    if (rule.kind != Rule::Kind::shape) continue;
    for (const Rule::Entry& entry : rule.entries) {
      if (!entry.name.is_exact()) continue;
      result[entry.name.text()] = parse_shape(entry.value);
    }
  }
  return result;
}

}  // namespace

RulePasses rule_passes(std::vector<Rule> rules) {
  const auto shared = std::make_shared<const std::vector<Rule>>(std::move(rules));
  const auto stage = [&](Rule::Stage which) {
    return [shared, which](Rewriter& rewriter) { apply_rules(rewriter, *shared, which); };
  };
  RulePasses all{.passes =
                     {
                         {.name = "rules_interface",
                          .why = "the user's names, shapes, inputs and outputs come before all other passes",
                          .run = stage(Rule::Stage::interface),
                          .after = ""},
                         {.name = "rules_before",
                          .why = "the user's replacements, which refer to the names of the original model",
                          .run = stage(Rule::Stage::before),
                          .after = "upgrade_opset"},
                         {.name = "rules_after",
                          .why = "the user's replacements of nodes that the fusions have not replaced",
                          .run = stage(Rule::Stage::after)},
                     },
                 .input_shapes = shapes_of(*shared)};
  for (passes::Pass& pass : all.passes) pass.is_required = true;
  return all;
}

RulePasses rule_passes(const std::filesystem::path& file) { return rule_passes(read_rules(file)); }

passes::Pass library_fusion_pass() {
  return {.name = passes::library_pass,
          .why = "operators of loaded libraries have priority over Graft's own operators",
          .run = fuse_library_operators,
          .after = "lower_drop_ins",
          .runs_in_every_round = true};
}

}  // namespace graft::rules
