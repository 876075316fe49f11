#include "rules/rule_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace graft::rules {

RuleRun::RuleRun(Rewriter& rewriter, const Rule& rule)
    : rewriter(rewriter),
      rule(rule),
      outcome{.place = rule.place.to_string(),
              .rule = rule.text,
              .reason = rule.reason,
              .optional = rule.optional,
              .notes = {}} {}

std::string request_text(const Rule& rule) {
  return fmt::format("requested by {}{}{}", rule.place.to_string(), rule.reason.empty() ? "" : ": ", rule.reason);
}

void record_change(RuleRun& run, Rewriter::Subject subject, std::string replacement) {
  ++run.outcome.matched;
  ++run.outcome.applied;
  run.rewriter.record(std::move(subject), std::move(replacement), request_text(run.rule),
                      "by definition: the remaining nodes are unchanged");
}

void record_miss(RuleRun& run, std::string note) {
  ++run.outcome.matched;
  run.outcome.notes.push_back(std::move(note));
}

void record_missing_tensor(RuleRun& run, const NamePattern& name, const char* what,
                           const std::vector<onnx::Value*>& among) {
  const std::vector<std::string> known = names_of(among);
  constexpr std::size_t few = 8;
  const bool lists_names = !known.empty() && known.size() <= few;
  std::string note =
      fmt::format("there is no {} '{}'{}", what, name.text(), did_you_mean(name.text(), known, lists_names ? "." : ""));
  if (lists_names) note += fmt::format(" The model has the {}s {}", what, fmt::join(known, ", "));
  record_miss(run, std::move(note));
}

std::vector<Region> select_regions(RuleRun& run) {
  Selection selection = select(run.rule.select, run.rewriter.graphs());
  run.outcome.matched = selection.regions.size();
  run.outcome.notes = std::move(selection.nearest);
  return std::move(selection.regions);
}

Proposal propose(const Rule& rule, const Region& region, std::string replacement) {
  return {.nodes = region.nodes,
          .inputs = {},
          .outputs = region.outputs,
          .replacement = std::move(replacement),
          .reason = request_text(rule),
          .by_definition = rule.prove ? "" : "not proven, because of prove: false in the rule: " + rule.reason,
          .edit = {},
          .changes_result = rule.changes_result};
}

void apply(RuleRun& run, const Region& region, const Proposal& proposal) {
  if (run.rewriter.apply(proposal)) {
    ++run.outcome.applied;
  } else {
    run.outcome.notes.push_back(
        fmt::format("{}: the rule was not applied: {}", region.name, run.rewriter.last_rejected().proof));
  }
}

}  // namespace graft::rules
