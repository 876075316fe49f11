#include "rules/rule_passes.hpp"

#include <memory>
#include <utility>

namespace graft::rules {

std::vector<passes::Pass> rule_passes(std::vector<Rule> rules) {
  const auto shared = std::make_shared<const std::vector<Rule>>(std::move(rules));
  const auto replacements = [&](Rule::Stage stage) {
    return [shared, stage](Rewriter& rewriter) { apply_replacements(rewriter, *shared, stage); };
  };
  std::vector<passes::Pass> all{
      {.name = "rules_interface",
       .why = "the user's names, shapes, inputs and outputs come before all other passes",
       .run = [shared](Rewriter& rewriter) { apply_interface_rules(rewriter, *shared); },
       .after = ""},
      {.name = "rules_before",
       .why = "the user's replacements, which refer to the names of the original model",
       .run = replacements(Rule::Stage::before),
       .after = "upgrade_opset"},
      {.name = "rules_after",
       .why = "the user's replacements of nodes that the fusions have not replaced",
       .run = replacements(Rule::Stage::after)},
  };
  for (passes::Pass& pass : all) pass.is_required = true;
  return all;
}

passes::Pass library_fusion_pass() {
  return {.name = passes::library_pass,
          .why = "operators of loaded libraries have priority over Graft's own operators",
          .run = fuse_library_operators,
          .after = "lower_drop_ins",
          .runs_in_every_round = true};
}

}  // namespace graft::rules
