// Counts and describes rewrites for reports.
#include "passes/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "onnx/node_ref.hpp"

namespace graft::passes {

std::string_view to_string(OperatorChoice::Kind kind) {
  switch (kind) {
    case OperatorChoice::Kind::native: return "native";
    case OperatorChoice::Kind::plugin: return "plugin";
    case OperatorChoice::Kind::function: return "function";
  }
  return "";
}

double NearMissNote::share() const {
  return pattern_nodes == 0 ? 0.0 : static_cast<double>(matched_nodes) / static_cast<double>(pattern_nodes);
}

bool is_nearer(const NearMissNote& a, const NearMissNote& b) {
  if (a.is_of_library != b.is_of_library) return a.is_of_library;
  if (a.share() != b.share()) return a.share() > b.share();
  return a.matched_nodes > b.matched_nodes;
}

std::size_t ConvertReport::count(std::string_view pass) const {
  return static_cast<std::size_t>(
      std::count_if(rewrites.begin(), rewrites.end(), [&](const Rewrite& rewrite) { return rewrite.pass == pass; }));
}

std::vector<std::string> replaced_texts(const Rewrite& rewrite) {
  std::vector<std::string> texts;
  if (!rewrite.others.empty()) texts.push_back(rewrite.others);
  for (const NodeRef& node : rewrite.nodes) texts.push_back(onnx::describe(node));
  return texts;
}

std::string replaced_text(const Rewrite& rewrite) {
  const std::vector<std::string> texts = replaced_texts(rewrite);
  constexpr std::size_t few = 2;
  return texts.size() <= few ? fmt::format("{}", fmt::join(texts, ", ")) : fmt::format("{} nodes", texts.size());
}

bool is_cleanup(const ConvertReport& report, const Rewrite& rewrite) {
  const auto made = [&](const PassSummary& pass) { return pass.pass == rewrite.pass; };
  const auto found = std::find_if(report.passes.begin(), report.passes.end(), made);
  return found != report.passes.end() && found->is_cleanup;
}

std::vector<std::string> rejection_warnings(const ConvertReport& report) {
  // Networks repeat layers: a rewrite that is rejected at one layer is rejected at all of them, and reported once.
  std::vector<std::pair<std::string, std::vector<const Rewrite*>>> alike;
  for (const Rewrite& rewrite : report.rejected) {
    if (rewrite.pass.starts_with("rules_")) continue;
    std::string what = fmt::format("{}: not done: {}{}", rewrite.pass, rewrite.replacement,
                                   rewrite.place.empty() ? "" : fmt::format(" ({})", rewrite.place));
    auto found = std::find_if(alike.begin(), alike.end(), [&](const auto& entry) { return entry.first == what; });
    if (found == alike.end()) found = alike.emplace(found, std::move(what), std::vector<const Rewrite*>());
    found->second.push_back(&rewrite);
  }
  std::vector<std::string> warnings;
  for (const auto& [what, rewrites] : alike) {
    const std::size_t more = rewrites.size() - 1;
    warnings.push_back(fmt::format("{} in the place of {}{}: {}", what, replaced_text(*rewrites.front()),
                                   more == 0 ? "" : fmt::format(", and at {} more place{}", more, more == 1 ? "" : "s"),
                                   rewrites.front()->proof));
  }
  return warnings;
}

std::vector<std::string> all_warnings(const ConvertReport& report) {
  std::vector<std::string> warnings = report.warnings;
  for (std::string& warning : rejection_warnings(report)) warnings.push_back(std::move(warning));
  return warnings;
}

std::string_view to_string(ProofKind kind) {
  switch (kind) {
    case ProofKind::own: return "own";
    case ProofKind::spot_check: return "spot check";
    case ProofKind::one_of_a_kind: return "one of a kind";
  }
  return "";
}

}  // namespace graft::passes
