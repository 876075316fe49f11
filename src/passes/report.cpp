// Counts and describes rewrites for reports.
#include "passes/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

namespace graft::passes {

bool is_nearer(const NearMiss& a, const NearMiss& b) {
  if (a.is_of_library != b.is_of_library) return a.is_of_library;
  if (a.share() != b.share()) return a.share() > b.share();
  return a.matched_nodes > b.matched_nodes;
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
        "{}: the replacement of {} by {}{}{} was not applied: {}", rewrite.pass, rewrite.replaced_text(),
        rewrite.replacement, rewrite.place.empty() ? "" : fmt::format(" ({})", rewrite.place),
        more == 0 ? "" : fmt::format(", and at {} more place{},", more, more == 1 ? "" : "s"), rewrite.proof));
  }
  return warnings;
}

}  // namespace graft::passes
