// Probes the whole model, then the nodes that TensorRT names, then the remaining nodes.
#include "inspect/tensorrt_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "inspect/alike_nodes.hpp"
#include "inspect/different_tensors.hpp"
#include "inspect/model_parts.hpp"
#include "inspect/tensorrt_support.hpp"
#include "inspect/trial_words.hpp"
#include "onnx/extract.hpp"
#include "onnx/faults.hpp"
#include "onnx/operator_node.hpp"

namespace graft::inspect {

using nlohmann::json;

namespace {

/// Thrown if nodes that failed with one set of suggested sizes build with a later set, so that the search must start
/// again with that set.
struct BuildsWithOtherSizes {
  std::size_t suggestion;
};

std::vector<std::string> ranges_in(const Trial& trial) {
  return trial.answer.value("ranges", std::vector<std::string>());
}

}  // namespace

bool fails(Judge level, const Trial& trial) {
  if (trial.is_cut_short || trial.is_by_sizes) return false;
  if (trial.outcome == Outcome::refused) return level == Judge::parser;
  return trial.outcome != Outcome::accepted;
}

TensorRTProbe::TensorRTProbe(onnx::Model& model, Trials& trials, SizeRanges& ranges)
    : model_(model), trials_(trials), ranges_(ranges), nodes_(model.graph().nodes()) {
  for (const onnx::Node* node : nodes_) {
    by_name_.emplace(node->name, node);
    for (const onnx::Graph* inner : node->subgraphs()) {
      inner->for_each_node([&](const onnx::Node& inside) { by_name_.emplace(inside.name, node); });
    }
  }
}

ProbeReport TensorRTProbe::run(Judge level, Order order) {
  try {
    const bool is_built_first = level == Judge::builder && order != Order::known_first;
    if (is_built_first && builds_at_once()) return report_;
    if (level != Judge::rule) ask_parser();
    if (level != Judge::builder) return report_;
    const bool is_answered = order != Order::known_first && ask_about_whole();
    if (!is_answered && order != Order::whole_only) ask_builder();
  } catch (const BudgetSpent& spent) {
    leave_unanswered(spent);
  }
  return report_;
}

void TensorRTProbe::leave_unanswered(const BudgetSpent& spent) {
  std::string why = spent.what;
  if (!open_failure_.empty()) why += fmt::format("; some of the remaining nodes fail: {}", open_failure_);
  for (const onnx::Node* node : left()) {
    if (built_.contains(node)) continue;
    report_.not_asked.emplace(node, why);
    report_.over_budget.insert(node);
  }
}

onnx::Model TensorRTProbe::smallest_part(const Finding& finding) const {
  if (finding.part != nullptr) return finding.part->clone();
  if (finding.inside != nullptr && finding.nodes.size() == 1) {
    if (auto found = alone(*finding.nodes.front(), *finding.inside)) {
      if (!trials_.is_spent() && trials_.parse(*found).outcome == finding.outcome) return std::move(*found);
    }
  }
  return part_of(finding.nodes);
}

onnx::Model TensorRTProbe::part_of(const Nodes& nodes) const {
  const Nodes needed = with_sizes(nodes, model_.graph(), bad_);
  onnx::Model part = needed.size() == nodes_.size() ? model_.clone() : extract_nodes(model_, needed);
  declare_outputs(part);
  return part;
}

TensorRTProbe::Nodes TensorRTProbe::left() const { return left_of(Nodes(nodes_.begin(), nodes_.end())); }

TensorRTProbe::Nodes TensorRTProbe::left_of(const Nodes& nodes) const {
  Nodes kept;
  for (const onnx::Node* node : nodes) {
    if (!bad_.contains(node) && !report_.not_asked.contains(node)) kept.push_back(node);
  }
  return kept;
}

void TensorRTProbe::infer() {
  infer_around_faults(model_, [](const onnx::Node&, const Error&) {});  // assumed types may contradict known ones
}

void TensorRTProbe::add(Finding finding) {
  if (is_certain(finding)) {
    bad_.insert(finding.nodes.begin(), finding.nodes.end());
    const bool has_meant = finding.cause && finding.cause->meant && finding.inside == nullptr;
    if (has_meant) meant_.emplace(finding.nodes.front(), *finding.cause->meant);
    report_.findings.push_back(std::move(finding));
  } else {
    const onnx::Node* node = finding.nodes.front();
    uncertain_.emplace(
        node, fmt::format("TensorRT refuses it if {}, which was assumed for the trial and may be the cause: {}",
                          report_.supposed.at(node), finding.words));
  }
  set_aside();
}

bool TensorRTProbe::is_certain(const Finding& finding) const {
  const bool is_supposed = std::any_of(finding.nodes.begin(), finding.nodes.end(),
                                       [&](const onnx::Node* node) { return report_.supposed.contains(node); });
  if (!is_supposed || finding.nodes.size() != 1) return true;
  if (finding.outcome == Outcome::crashed || finding.outcome == Outcome::hung) return true;
  if (finding.cause) return finding.cause->cause != "plugin_inputs";
  return fails_by_rule(finding.inside == nullptr ? *finding.nodes.front() : *finding.inside);
}

Trial TensorRTProbe::try_nodes(Judge level, const Nodes& nodes) {
  // Build time grows faster than the number of nodes. A build of many nodes gets a share of the remaining budget, so
  // that there is time left to build them in parts.
  constexpr std::size_t few = 64;
  constexpr double share_of_many = 0.4;
  return try_nodes(level, nodes, nodes.size() > few ? share_of_many : 1.0);
}

Trial TensorRTProbe::try_nodes(Judge level, const Nodes& nodes, double share) {
  const onnx::Model part = part_of(nodes);
  Trial trial = level == Judge::parser ? trials_.parse(part) : trials_.build(part, ranges_.for_build(part), share);
  if (is_about_sizes(trial) && ranges_.supposes_sizes(part)) {
    trial = trials_.build(part, ranges_.for_build(part, SizeRanges::Unknown::same), share);
    trial.is_by_sizes = is_about_sizes(trial);
  }
  if (trial.outcome == Outcome::accepted) {
    for (const json& plugin : trial.answer["plugins"]) report_.plugins[plugin.value("layer", "")] = plugin;
    if (level == Judge::builder) built_.insert(nodes.begin(), nodes.end());
    for (DifferentTensor& found : find_different_tensors(part, trial.answer.value("tensors", json::object()))) {
      report_.different.emplace(std::move(found.name), std::move(found.reason));
    }
  }
  return trial;
}

void TensorRTProbe::ask_parser() {
  while (true) {
    const Nodes nodes = left();
    bool is_accepted = nodes.empty();
    if (!is_accepted) {
      Trial trial = try_nodes(Judge::parser, nodes);
      is_accepted = trial.outcome == Outcome::accepted;
      if (is_accepted) {
        learn_types_of_plugins();
      } else if (!add_refusals(trial.answer)) {
        std::vector<Finding> found = find_suspects(Judge::parser, nodes, trial);
        if (found.empty()) found.push_back(find_smallest(Judge::parser, nodes, std::move(trial)));
        for (Finding& finding : found) add(std::move(finding));
      }
    }
    if (!suppose_outputs() && is_accepted) return;
  }
}

bool TensorRTProbe::add_refusals(const json& answer) {
  const std::set<const onnx::Node*> before = bad_;
  std::vector<Finding> named;
  for (const json& error : answer.value("errors", json::array())) {
    const auto [node, inside] = named_by(error);
    if (node == nullptr || before.contains(node) || report_.not_asked.contains(node)) continue;
    named.push_back(refusal(*node, inside, error, answer));
    add(named.back());
  }
  for (const Finding& finding : named) {
    for (Finding& alike : refusals_alike(finding)) add(std::move(alike));
  }
  return !named.empty();
}

bool TensorRTProbe::builds_at_once() {
  try {
    first_build_ = try_nodes(Judge::builder, left(), 1.0);
  } catch (const BudgetSpent&) {  // the parser runs next, and `ask_about_whole` reports the budget
    return false;
  }
  return record_whole(*first_build_);
}

bool TensorRTProbe::record_whole(const Trial& trial) {
  std::vector<std::string> ranges = ranges_in(trial);
  if (trial.outcome != Outcome::accepted) {
    std::string set = fmt::format("{}", fmt::join(ranges, ", "));
    auto& failing = report_.failing_ranges;
    const bool is_new = !set.empty() && std::find(failing.begin(), failing.end(), set) == failing.end();
    if (is_new) failing.push_back(std::move(set));
    return false;
  }
  report_.ranges = std::move(ranges);
  report_.pieces = 1;
  return true;
}

bool TensorRTProbe::ask_about_whole() {
  const Nodes nodes = left();
  if (nodes.size() != nodes_.size()) return false;
  const std::size_t sets = std::max<std::size_t>(ranges_.suggestion_count(), 1);
  Trial first;
  const SizeRanges first_ranges = ranges_;
  for (std::size_t i = 0; i < sets; ++i) {
    if (i > 0) ranges_.use_suggestion(i);
    if (i > 0 && !ranges_.differs_from(first_ranges, model_)) continue;  // all ranges were given
    Trial trial;
    try {
      if (i == 0 && first_build_ && first_build_->outcome != Outcome::refused) {
        first = *std::move(first_build_);
        if (first.outcome != Outcome::failed) break;
        continue;
      }
      trial = try_nodes(Judge::builder, nodes, 1.0);
    } catch (const BudgetSpent& spent) {
      if (i > 0) break;
      report_.not_built = spent.what;
      return true;
    }
    if (record_whole(trial)) return true;
    if (i == 0) first = std::move(trial);
    if (first.outcome != Outcome::failed) break;
  }
  if (ranges_.suggestion_count() > 0) ranges_.use_suggestion(0);
  if (nodes.empty()) {
    report_.not_built = words_of(first);
    return true;
  }
  const bool is_by_sizes = first.is_by_sizes || is_about_sizes(first);
  const bool has_cause =
      std::any_of(nodes.begin(), nodes.end(), [&](const auto* node) { return is_known_to_fail_inside(*node); });
  if (!is_by_sizes || has_cause) return false;
  const std::string why =
      fmt::format("the network accepts none of the sizes that were tried: {}; {} NAME=MIN..OPT..MAX sets other sizes",
                  words_of(first), setting_name(Setting::shape_ranges));
  for (const onnx::Node* node : nodes) report_.not_asked.emplace(node, why);
  return true;
}

void TensorRTProbe::ask_builder() {
  while (true) {
    try {
      ask_about_known();
      report_.pieces = build_left_of(left());
      return;
    } catch (const BuildsWithOtherSizes& other) {  // a later set each time, so this ends
      ranges_.use_suggestion(other.suggestion);
      open_failure_.clear();
      for (const onnx::Node* node : without_sizes_) uncertain_.erase(node);
      without_sizes_.clear();
      set_aside();
    }
  }
}

bool TensorRTProbe::fails_with_other_sizes(const Finding& finding) {
  if (finding.outcome != Outcome::failed || finding.ranges.empty()) return true;
  const bool is_explained = std::any_of(finding.nodes.begin(), finding.nodes.end(),
                                        [&](const onnx::Node* node) { return is_known_to_fail_inside(*node); });
  if (is_explained) return true;
  constexpr double share = 0.2;  // the share of the remaining time that each set may use
  const onnx::Model part = part_of(finding.nodes);
  SizeRanges others = ranges_;
  for (std::size_t i = 0; i < ranges_.suggestion_count(); ++i) {
    others.use_suggestion(i);
    if (!ranges_.differs_from(others, part)) continue;
    Trial trial;
    try {
      trial = trials_.build(part, others.for_build(part), share);
    } catch (const BudgetSpent&) {
      return true;
    }
    if (trial.outcome != Outcome::accepted) continue;
    if (i > ranges_.suggestion()) throw BuildsWithOtherSizes{i};
    const std::string why =
        fmt::format("it builds for {}, for which other nodes fail; it fails for {}: {}",
                    fmt::join(ranges_in(trial), ", "), fmt::join(finding.ranges, ", "), finding.words);
    for (const onnx::Node* node : finding.nodes) uncertain_.emplace(node, why);
    set_aside();
    return false;
  }
  return true;
}

bool TensorRTProbe::is_known_to_fail_inside(const onnx::Node& node) const {
  return is_known_to_fail(node) || find_inside(model_, node, is_known_to_fail) != nullptr;
}

/// Probes one node of each kind that rules say fails, and each node that contains such a node, by itself. Their
/// failures then need not be searched for in builds of many nodes.
void TensorRTProbe::ask_about_known() {
  std::set<std::string> kinds;
  for (const onnx::Node* node : left()) {
    if (bad_.contains(node) || report_.not_asked.contains(node)) continue;
    if (is_known_to_fail(*node)) {
      const auto likeness = likeness_of(*node, can_be_input);
      if (!kinds.insert(likeness ? likeness->kind : node->op_type).second) continue;
    } else if (!is_known_to_fail_inside(*node)) {
      continue;
    }
    const Trial trial = try_nodes(Judge::builder, {node});
    if (fails(Judge::builder, trial) || (trial.is_by_sizes && is_known_to_fail(*node))) {
      add_with_alike(finding_of({node}, trial));
    }
  }
}

std::size_t TensorRTProbe::build_left_of(const Nodes& nodes) {
  for (Nodes part = left_of(nodes); !part.empty(); part = left_of(nodes)) {
    Trial trial = try_nodes(Judge::builder, part);
    if (trial.outcome == Outcome::accepted) return 1;
    if (fails(Judge::builder, trial)) {
      find_failing(part, std::move(trial));
      continue;
    }
    if (trial.is_by_sizes && part.size() == 1) {
      leave_without_sizes(*part.front(), trial);
      return 0;
    }
    std::size_t pieces = 0;
    for (const Nodes& half : halves_of(part)) pieces += build_left_of(half);
    return pieces;
  }
  return 0;
}

void TensorRTProbe::leave_without_sizes(const onnx::Node& node, const Trial& trial) {
  const std::string why = fmt::format(
      "when it is cut out of the network, the sizes assumed for its inputs contradict each other: {}", words_of(trial));
  uncertain_.emplace(&node, why);
  without_sizes_.insert(&node);
  set_aside();
}

std::pair<const onnx::Node*, const onnx::Node*> TensorRTProbe::named_by(const json& error) const {
  const std::string name = error.value("node", "");
  const std::string op_type = error.value("op_type", "");
  // From the outside in, such as "if_1 (If)", "body (then_branch)".
  const auto around = error.value("local_functions", std::vector<std::string>());
  const std::string outermost = around.empty() ? name : around.front().substr(0, around.front().rfind(" ("));
  const auto node = by_name_.find(outermost);
  if (node == by_name_.end()) return {nullptr, nullptr};
  if (node->second->name == name && around.empty()) return {node->second, nullptr};
  const auto is_it = [&](const onnx::Node& inner) { return inner.name == name && inner.op_type == op_type; };
  const auto is_like_it = [&](const onnx::Node& inner) { return inner.name.empty() && inner.op_type == op_type; };
  const onnx::Node* inside = find_inside(model_, *node->second, is_it);
  return {node->second, inside != nullptr ? inside : find_inside(model_, *node->second, is_like_it)};
}

Finding TensorRTProbe::refusal(const onnx::Node& node, const onnx::Node* inside, const json& error,
                               const json& answer) {
  Finding finding{
      .nodes = {&node}, .inside = inside, .outcome = Outcome::refused, .words = words_of_error(error), .cause = {}};
  if (answer["errors"].size() == 1) finding.words += words_beside_the_error(answer);
  const onnx::Node& refused = inside == nullptr ? node : *inside;
  const bool is_creators = error.value("message", "").find("Could not create the plugin") != std::string::npos;
  const std::string printed = is_creators ? printed_of(node, answer) : "";
  finding.cause = cause_of_refusal(refused, error, trials_.creators(), printed);
  if (finding.cause && !is_creators) finding.words = with_output(finding.words, answer);
  const bool has_wrong_inputs = finding.cause && finding.cause->cause == "plugin_inputs";
  if (has_wrong_inputs && inside == nullptr) find_number_of_inputs(node, *finding.cause);
  return finding;
}

/// Returns what the plugin of a node printed. If `answer` contains several errors, another plugin may have printed the
/// text, so the node is parsed by itself first.
std::string TensorRTProbe::printed_of(const onnx::Node& node, const json& answer) {
  const bool is_alone = answer["errors"].size() == 1 || trials_.is_spent();
  return printed_in(is_alone || printed_in(answer).empty() ? answer : trials_.parse(part_of({&node})).answer);
}

/// Parses a node with other numbers of inputs (fewer, or the last input repeated), and appends to the reason the
/// numbers that the plugin accepts.
void TensorRTProbe::find_number_of_inputs(const onnx::Node& node, PluginCause& cause) {
  constexpr std::size_t most = 8;
  std::vector<std::size_t> taken;
  for (std::size_t count = 1; count <= most && !trials_.is_spent(); ++count) {
    if (count == node.inputs.size() || node.inputs.empty()) continue;
    onnx::Model model = part_of({&node});
    onnx::Graph& graph = model.graph();
    onnx::Node& copy = *graph.find_node(node.name);
    while (copy.inputs.size() > count) graph.remove_last_input(copy);
    while (copy.inputs.size() < count) graph.add_input_to(copy, copy.inputs.back());
    if (trials_.parse(model).outcome == Outcome::accepted) taken.push_back(count);
  }
  if (!taken.empty())
    cause.reason +=
        fmt::format("; of the other numbers of inputs that were tried, the plugin accepts {}", fmt::join(taken, ", "));
}

const json* TensorRTProbe::creator_in(const onnx::Node& node) const {
  const json* found = nullptr;
  const auto has_creator = [&](const onnx::Node& each) {
    found = onnx::is_standard_operator(each.domain, each.op_type) ? nullptr : creator_of(each, trials_.creators());
    return found != nullptr;
  };
  if (!has_creator(node)) static_cast<void>(find_inside(model_, node, has_creator));
  return found;
}

Finding TensorRTProbe::finding_of(const Nodes& part, const Trial& trial) const {
  const json& errors = trial.answer.value("errors", json::array());
  const bool is_refused = trial.outcome == Outcome::refused && !errors.empty();
  Finding finding{.nodes = part,
                  .inside = nullptr,
                  .outcome = trial.outcome,
                  .words = is_refused ? words_of_error(errors[0]) : words_of(trial),
                  .cause = {},
                  .ranges = ranges_in(trial)};
  const json* creator = part.size() == 1 ? creator_in(*part.front()) : nullptr;
  if (creator == nullptr) return finding;
  switch (trial.outcome) {
    case Outcome::crashed: finding.cause = cause_of_crash(*creator); break;
    case Outcome::hung: finding.cause = cause_of_hang(*creator); break;
    case Outcome::failed: finding.cause = cause_of_failed_build(*part.front(), *creator, finding.words); break;
    default: break;
  }
  return finding;
}

}  // namespace graft::inspect
