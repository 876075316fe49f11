// Counts and describes rewrites for reports.
#include "passes/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace graft::passes {

bool is_nearer(const NearMiss& a, const NearMiss& b) {
  if (a.is_of_library != b.is_of_library) return a.is_of_library;
  if (a.share() != b.share()) return a.share() > b.share();
  return a.matched_nodes > b.matched_nodes;
}

std::string replaced_text(const Rewrite& rewrite) {
  const std::vector<std::string> texts = rewrite.replaced();
  constexpr std::size_t few = 2;
  return texts.size() <= few ? fmt::format("{}", fmt::join(texts, ", ")) : fmt::format("{} nodes", texts.size());
}

bool is_cleanup(const RewriteReport& report, const Rewrite& rewrite) {
  const auto made = [&](const PassSummary& pass) { return pass.pass == rewrite.pass; };
  const auto found = std::find_if(report.passes.begin(), report.passes.end(), made);
  return found != report.passes.end() && found->is_cleanup;
}

std::vector<std::string> rejection_warnings(const RewriteReport& report) {
  // Networks repeat layers: a rewrite that is rejected at one layer is rejected at all of them, and reported once.
  std::vector<std::vector<const Rewrite*>> alike;
  for (const Rewrite& rewrite : report.rejected) {
    if (rewrite.pass.starts_with("rules_")) continue;
    const auto found = std::find_if(alike.begin(), alike.end(), [&](const std::vector<const Rewrite*>& group) {
      const Rewrite& first = *group.front();
      return std::tie(first.pass, first.replacement, first.place) ==
             std::tie(rewrite.pass, rewrite.replacement, rewrite.place);
    });
    if (found == alike.end()) {
      alike.push_back({&rewrite});
    } else {
      found->push_back(&rewrite);
    }
  }
  std::vector<std::string> warnings;
  for (const std::vector<const Rewrite*>& group : alike) {
    const Rewrite& rewrite = *group.front();
    const std::size_t more = group.size() - 1;
    warnings.push_back(fmt::format(
        "{}: the replacement of {} by {}{}{} was not applied: {}", rewrite.pass, replaced_text(rewrite),
        rewrite.replacement, rewrite.place.empty() ? "" : fmt::format(" ({})", rewrite.place),
        more == 0 ? "" : fmt::format(", and at {} more place{},", more, more == 1 ? "" : "s"), rewrite.proof));
  }
  return warnings;
}

}  // namespace graft::passes
