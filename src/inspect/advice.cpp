// Advice is a list of clauses, joined by "; ". A clause may begin with "or".
#include "inspect/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "graft/setting.hpp"
#include "inspect/tensorrt_support.hpp"

namespace graft::inspect {
namespace {

constexpr std::string_view between_clauses = "; ";

bool names_cut(std::string_view text) { return text.find(setting_name(Setting::cut)) != std::string_view::npos; }

std::string without_cut(std::string_view advice) {
  std::string kept;
  bool is_after_removed = false;
  while (!advice.empty()) {
    const std::size_t end = advice.find(between_clauses);
    std::string_view clause = advice.substr(0, end);
    advice = end == std::string_view::npos ? "" : advice.substr(end + between_clauses.size());
    if (names_cut(clause)) {
      is_after_removed = true;
      continue;
    }
    constexpr std::string_view alternative = "or ";
    if (is_after_removed && clause.starts_with(alternative)) clause.remove_prefix(alternative.size());
    is_after_removed = false;
    kept += fmt::format("{}{}", kept.empty() ? "" : between_clauses, clause);
  }
  return kept.empty() ? "run the network in another runtime, such as ONNX Runtime" : kept;
}

std::string obstacle_text(const report::NearMiss& missed) {
  return fmt::format("graft convert does not replace the node with layers that TensorRT has: {}", missed.reason);
}

/// Returns whether the advice begins with a clause "graft convert ..." that says what the conversion does.
bool begins_with_conversion(std::string_view advice) {
  return advice.starts_with("graft convert ") && !names_cut(advice.substr(0, advice.find(between_clauses)));
}

}  // namespace

void note_obstacles(std::vector<NodeSupport>& nodes, const std::vector<report::NearMiss>& near_misses) {
  const std::string general = advice_to_convert();
  for (NodeSupport& node : nodes) {
    const bool is_general = node.advice == general;
    if (!is_bad(node.support) || (!is_general && !begins_with_conversion(node.advice))) continue;
    const auto missed = std::find_if(near_misses.begin(), near_misses.end(), [&](const report::NearMiss& note) {
      return note.pass == "lower_to_native" && note.node.id == node.node.id;
    });
    if (missed == near_misses.end()) {
      if (is_general) node.advice = advice_to_write_one();
    } else if (is_general) {
      node.advice = fmt::format("{}{}{} leaves the node to the host", obstacle_text(*missed), between_clauses,
                                setting_name(Setting::cut));
    } else {
      const std::size_t end = node.advice.find(between_clauses);
      node.advice = obstacle_text(*missed) + (end == std::string::npos ? "" : node.advice.substr(end));
    }
  }
}

bool advises_cut(const std::vector<NodeSupport>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const NodeSupport& node) { return names_cut(node.advice); });
}

void withdraw_cut(std::vector<NodeSupport>& nodes) {
  for (NodeSupport& node : nodes) {
    if (names_cut(node.advice)) node.advice = without_cut(node.advice);
  }
}

}  // namespace graft::inspect
