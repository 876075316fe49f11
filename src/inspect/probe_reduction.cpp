// Narrows a failure down to as few nodes as fail together: nodes that TensorRT names, then plugins, then halves.
#include <algorithm>
#include <utility>

#include "engine/smallest_failing.hpp"
#include "inspect/tensorrt_probe.hpp"
#include "inspect/trial_words.hpp"

namespace graft::inspect {

using nlohmann::json;

void TensorRTProbe::find_failing(const Nodes& nodes, Trial whole) {
  open_failure_ = words_of(whole);
  const auto count_found = [&] { return bad_.size() + uncertain_.size(); };
  const std::size_t found_before = count_found();
  for (Finding& found : find_suspects(Judge::builder, nodes, whole)) add_with_alike(std::move(found));
  if (count_found() > found_before) return;
  constexpr std::size_t few = 8;
  if (nodes.size() > few) {
    for (const Nodes& half : halves_of(nodes)) {
      const Nodes part = left_of(half);
      if (part.empty()) continue;
      Trial trial = try_nodes(Judge::builder, part);
      if (trial.is_cut_short) {
        build_left_of(part);
      } else if (fails(Judge::builder, trial)) {
        find_failing(part, std::move(trial));
      }
    }
  }
  if (count_found() > found_before) return;
  add_with_alike(find_smallest(Judge::builder, nodes, std::move(whole)));
}

std::array<TensorRTProbe::Nodes, 2> TensorRTProbe::halves_of(const Nodes& nodes) {
  const auto middle = nodes.begin() + static_cast<std::ptrdiff_t>(nodes.size() / 2);
  return {Nodes(nodes.begin(), middle), Nodes(middle, nodes.end())};
}

/// Returns the nodes that may have caused a failure: those whose names occur in TensorRT's messages, longer names first
/// because a name may contain another, and then the plugins.
TensorRTProbe::Nodes TensorRTProbe::suspects(const Nodes& nodes, const json& answer) const {
  std::string text;
  for (const json& message : answer.value("messages", json::array())) text += message.value("message", "") + "\n";
  Nodes suspected;
  for (const onnx::Node* node : nodes) {
    if (!node->name.empty() && names(text, node->name)) suspected.push_back(node);
  }
  std::stable_sort(suspected.begin(), suspected.end(),
                   [](const onnx::Node* a, const onnx::Node* b) { return a->name.size() > b->name.size(); });
  constexpr std::size_t most_named = 4;
  constexpr std::size_t most = 16;
  suspected.resize(std::min(suspected.size(), most_named));
  for (const onnx::Node* node : nodes) {
    const bool is_new = std::find(suspected.begin(), suspected.end(), node) == suspected.end();
    if (is_new && creator_in(*node) != nullptr && suspected.size() < most) suspected.push_back(node);
  }
  return suspected;
}

/// Returns findings on suspected nodes that fail alone. Stops at the first such node, except after a hang. After a hang
/// with one suspect, the other nodes are tried without it first: if they are accepted, the suspect is the cause. This
/// saves time, because each trial that hangs takes the whole time limit.
std::vector<Finding> TensorRTProbe::find_suspects(Judge level, const Nodes& nodes, const Trial& whole) {
  if (nodes.size() == 1) return {finding_of(nodes, whole)};
  const Nodes suspected = suspects(nodes, whole.answer);
  const bool has_hung = whole.outcome == Outcome::hung;
  if (has_hung && suspected.size() == 1) {
    Nodes others = nodes;
    std::erase(others, suspected.front());
    const Trial trial = try_nodes(level, others);
    if (trial.outcome == Outcome::accepted) return {finding_of(suspected, whole)};
  }
  std::vector<Finding> findings;
  for (const onnx::Node* node : suspected) {
    if (!findings.empty() && !has_hung) break;
    const Trial trial = try_nodes(level, {node});
    if (fails(level, trial)) findings.push_back(finding_of({node}, trial));
  }
  return findings;
}

Finding TensorRTProbe::find_smallest(Judge level, const Nodes& nodes, Trial whole) {
  Trial last = std::move(whole);
  const auto chosen = [&](const std::vector<std::size_t>& indices) {
    Nodes items;
    for (const std::size_t index : indices) items.push_back(nodes[index]);
    return items;
  };
  const Nodes part = chosen(engine::smallest_failing(nodes.size(), [&](const std::vector<std::size_t>& indices) {
    Trial trial = try_nodes(level, chosen(indices), 1.0);
    const bool failed = fails(level, trial);
    if (failed) last = std::move(trial);
    return failed;
  }));
  return finding_of(part, last);
}

}  // namespace graft::inspect
