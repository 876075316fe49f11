// Whole model first; then the node that TensorRT names; then halves, each by itself.
#include "inspect/tensorrt_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "engine/smallest_failing.hpp"
#include "graft/error.hpp"
#include "graph/extract.hpp"
#include "graph/faults.hpp"
#include "graph/operator_node.hpp"
#include "graph/text.hpp"
#include "inspect/alike_nodes.hpp"
#include "inspect/branch_model.hpp"
#include "inspect/model_parts.hpp"
#include "inspect/tensorrt_support.hpp"
#include "inspect/trial_words.hpp"

namespace graft::inspect {
namespace {

using nlohmann::json;

/// By the name that the engine driver gives it, which is Graft's.
std::optional<ElementType> element_type_named(std::string_view name) {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::i8,
                                 ElementType::u8, ElementType::i32, ElementType::i64}) {
    if (to_string(type) == name) return type;
  }
  return name == "bool" ? std::optional(ElementType::boolean) : std::nullopt;
}

bool is_known_to_fail(const Node& node) { return fails_by_rule(node) && !node.metadata.contains(fault_note); }

/// The rule by which a node is known to fail; nothing where none is.
std::optional<std::string> rule_against(const Node& node) {
  if (node.metadata.contains(fault_note)) return std::nullopt;
  try {
    return refusal_of_tensorrt(node);
  } catch (const Error&) {  // an attribute of the wrong type
    return std::nullopt;
  }
}

bool fails(ProbeLevel level, const Trial& trial) {
  if (trial.is_cut_short || trial.is_by_sizes) return false;
  if (trial.outcome == Outcome::refused) return level == ProbeLevel::parser;
  return trial.outcome != Outcome::accepted;
}

}  // namespace

std::string_view name_of(ProbeLevel truth) {
  switch (truth) {
    case ProbeLevel::rule: return "rule";
    case ProbeLevel::parser: return "parser";
    case ProbeLevel::builder: return "builder";
  }
  return "";
}

TensorRTProbe::TensorRTProbe(Model& model, Trials& trials, const SizeRanges& ranges)
    : model_(model), trials_(trials), ranges_(ranges), nodes_(model.graph().nodes()) {
  for (const Node* node : nodes_) {
    by_name_.emplace(node->name, node);
    for (const Graph* inner : node->subgraphs()) {
      inner->for_each_node([&](const Node& inside) { by_name_.emplace(inside.name, node); });
    }
  }
}

ProbeReport TensorRTProbe::run(ProbeLevel level) {
  try {
    if (level != ProbeLevel::rule) ask_parser();
    if (level == ProbeLevel::builder) ask_builder();
  } catch (const BudgetSpent& spent) {
    leave_unanswered(spent);
  }
  return report_;
}

void TensorRTProbe::leave_unanswered(const BudgetSpent& spent) {
  std::string why = spent.what;
  if (!open_failure_.empty()) why += fmt::format("; of the nodes that are left some fail: {}", open_failure_);
  for (const Node* node : left()) {
    if (built_.contains(node)) continue;
    report_.not_asked.emplace(node, why);
    report_.over_budget.insert(node);
  }
}

Model TensorRTProbe::smallest_part(const Finding& finding) const {
  if (finding.part != nullptr) return finding.part->clone();
  if (finding.inside != nullptr && finding.nodes.size() == 1) {
    if (auto found = alone(*finding.nodes.front(), *finding.inside)) {
      if (!trials_.is_spent() && trials_.parse(*found).outcome == finding.outcome) return std::move(*found);
    }
  }
  return part_of(finding.nodes);
}

Model TensorRTProbe::part_of(const Nodes& nodes) const {
  const Nodes needed = with_sizes(nodes, model_.graph(), bad_);
  Model part = needed.size() == nodes_.size() ? model_.clone() : extract_nodes(model_, needed);
  declare_outputs(part);
  return part;
}

TensorRTProbe::Nodes TensorRTProbe::left() const { return left_of(Nodes(nodes_.begin(), nodes_.end())); }

TensorRTProbe::Nodes TensorRTProbe::left_of(const Nodes& nodes) const {
  Nodes kept;
  for (const Node* node : nodes) {
    if (!bad_.contains(node) && !report_.not_asked.contains(node)) kept.push_back(node);
  }
  return kept;
}

void TensorRTProbe::infer() {
  infer_around_faults(model_, [](const Node&, const Error&) {});  // what was supposed may contradict the rest
}

void TensorRTProbe::add(Finding finding) {
  if (is_certain(finding)) {
    bad_.insert(finding.nodes.begin(), finding.nodes.end());
    const bool has_meant = finding.cause && finding.cause->meant && finding.inside == nullptr;
    if (has_meant) meant_.emplace(finding.nodes.front(), *finding.cause->meant);
    report_.findings.push_back(std::move(finding));
  } else {
    const Node* node = finding.nodes.front();
    uncertain_.emplace(node, fmt::format("as if {}, TensorRT does not take it, which may be for that alone: {}",
                                         report_.supposed.at(node), finding.words));
  }
  set_aside();
}

bool TensorRTProbe::is_certain(const Finding& finding) const {
  const bool is_supposed = std::any_of(finding.nodes.begin(), finding.nodes.end(),
                                       [&](const Node* node) { return report_.supposed.contains(node); });
  if (!is_supposed || finding.nodes.size() != 1) return true;
  if (finding.outcome == Outcome::crashed || finding.outcome == Outcome::hung) return true;
  if (finding.cause) return finding.cause->cause != "plugin_inputs";
  return fails_by_rule(finding.inside == nullptr ? *finding.nodes.front() : *finding.inside);
}

bool TensorRTProbe::suppose_outputs() {
  bool any = false;
  for (const Node* node : nodes_) {
    if (!bad_.contains(node)) continue;
    std::string supposed = suppose_outputs_of(*node);
    if (supposed.empty()) continue;
    supposed_of_.emplace(node, std::move(supposed));
    any = true;
    infer();
  }
  if (!any) return false;
  for (const Node* node : nodes_) {
    for_each_read(*node, model_.graph(), [&](const Value& value) {
      if (value.producer == nullptr) return;
      if (const auto made = supposed_of_.find(value.producer); made != supposed_of_.end()) {
        report_.supposed.emplace(node, made->second);
      }
      const auto before = report_.supposed.find(value.producer);
      if (before != report_.supposed.end()) report_.supposed.emplace(node, before->second);
    });
  }
  set_aside();
  return true;
}

std::string TensorRTProbe::suppose_outputs_of(const Node& node) {
  if (is_standard_operator(node.domain, node.op_type)) return {};
  const auto is_unknown = [](const Value* value) {
    return value != nullptr && !value->is_unused() && value->opaque.empty() && (!value->type || !value->shape);
  };
  if (std::none_of(node.outputs.begin(), node.outputs.end(), is_unknown)) return {};
  if (std::string as_meant = try_meant_plugin(node); !as_meant.empty()) return as_meant;
  const auto like = std::find_if(node.inputs.begin(), node.inputs.end(),
                                 [](const Value* v) { return v != nullptr && v->type && v->shape; });
  if (like == node.inputs.end()) return {};
  for (Value* output : node.outputs) {
    if (!is_unknown(output)) continue;
    if (!output->type) output->type = (*like)->type;
    if (!output->shape) output->shape = (*like)->shape;
  }
  return fmt::format("'{}' made what '{}' is, {}", node.name, (*like)->name, type_text(**like));
}

/// The node as it was meant tells what it would make.
std::string TensorRTProbe::try_meant_plugin(const Node& node) {
  const auto meant = meant_.find(&node);
  if (meant == meant_.end() || trials_.is_spent()) return {};
  const MeantPlugin plugin_meant = std::move(meant->second);
  meant_.erase(meant);
  Model model = part_of({&node});
  Node& copy = *model.graph().find_node(node.name);
  copy.op_type = plugin_meant.name;
  copy.attributes["plugin_version"] = NodeAttribute(AttributeData(plugin_meant.version));
  copy.attributes["plugin_namespace"] = NodeAttribute(AttributeData(plugin_meant.space));
  const Trial trial = trials_.parse(model);
  if (trial.outcome != Outcome::accepted) return {};
  bool learnt = false;
  for (const json& plugin : trial.answer["plugins"]) learnt = learn_types(plugin) || learnt;
  if (!learnt) return {};
  return fmt::format("'{}' were the plugin {} {}", node.name, plugin_meant.name, plugin_meant.version);
}

/// Nodes that read of a bad one, or of one that was not asked, what cannot be an input.
void TensorRTProbe::set_aside() {
  report_.not_asked = uncertain_;
  for (const Node* node : nodes_) {
    if (bad_.contains(node) || report_.not_asked.contains(node)) continue;
    for_each_read(*node, model_.graph(), [&](const Value& value) {
      if (value.producer == nullptr || can_be_input(value)) return;
      const bool is_behind = bad_.contains(value.producer) || uncertain_.contains(value.producer);
      const auto before = report_.not_asked.find(value.producer);
      if (is_behind) {
        report_.not_asked.emplace(node, fmt::format("it needs what '{}' makes", value.producer->name));
      } else if (before != report_.not_asked.end()) {
        report_.not_asked.emplace(node, before->second);
      }
    });
  }
}

Trial TensorRTProbe::try_nodes(ProbeLevel level, const Nodes& nodes) {
  // The time of a build grows faster than the number of nodes: many of them get a share of what is left of the budget,
  // so that there is time to build them in pieces.
  constexpr std::size_t few = 64;
  constexpr double share_of_many = 0.4;
  return try_nodes(level, nodes, nodes.size() > few ? share_of_many : 1.0);
}

Trial TensorRTProbe::try_nodes(ProbeLevel level, const Nodes& nodes, double share) {
  const Model part = part_of(nodes);
  Trial trial = level == ProbeLevel::parser ? trials_.parse(part) : trials_.build(part, ranges_.of(part), share);
  if (is_about_sizes(trial) && ranges_.supposes_sizes(part)) {
    trial = trials_.build(part, ranges_.of(part, SizeRanges::Unknown::same), share);
    trial.is_by_sizes = is_about_sizes(trial);
  }
  if (trial.outcome == Outcome::accepted) {
    for (const json& plugin : trial.answer["plugins"]) report_.plugins[plugin.value("layer", "")] = plugin;
    if (level == ProbeLevel::builder) built_.insert(nodes.begin(), nodes.end());
  }
  return trial;
}

void TensorRTProbe::ask_parser() {
  while (true) {
    const Nodes nodes = left();
    bool is_accepted = nodes.empty();
    if (!is_accepted) {
      Trial trial = try_nodes(ProbeLevel::parser, nodes);
      is_accepted = trial.outcome == Outcome::accepted;
      if (is_accepted) {
        learn_types_of_plugins();
      } else if (!add_refusals(trial.answer)) {
        std::vector<Finding> found = find_suspects(ProbeLevel::parser, nodes, trial);
        if (found.empty()) found.push_back(find_smallest(ProbeLevel::parser, nodes, std::move(trial)));
        for (Finding& finding : found) add(std::move(finding));
      }
    }
    if (!suppose_outputs() && is_accepted) return;
  }
}

bool TensorRTProbe::add_refusals(const json& answer) {
  const std::set<const Node*> before = bad_;
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

std::vector<Finding> TensorRTProbe::refusals_alike(const Finding& finding) const {
  const Node& first = *finding.nodes.front();
  std::vector<Finding> findings;
  if (finding.inside != nullptr || !bad_.contains(&first)) return findings;
  const auto rule = rule_against(first);
  const auto wanted = likeness_of(first, can_be_input);
  for (const Node* node : left()) {
    if (node->op_type != first.op_type || node->domain != first.domain) continue;
    bool is_alike = rule && rule_against(*node) == rule;
    if (!is_alike && wanted) {
      const auto likeness = likeness_of(*node, can_be_input);
      is_alike = likeness && likeness->exact == wanted->exact;
    }
    if (!is_alike) continue;
    Finding& alike = findings.emplace_back(finding);
    alike.as = &first;
    alike.nodes = {node};
  }
  return findings;
}

/// Graft does not know what somebody else's plugin makes; without it, no part could begin behind one.
void TensorRTProbe::learn_types_of_plugins() {
  bool any = false;
  for (const auto& [node, plugin] : report_.plugins) any = learn_types(plugin) || any;
  if (any) infer();
}

bool TensorRTProbe::learn_types(const json& plugin) {
  bool any = false;
  for (const json& output : plugin.value("outputs", json::array())) {
    Value* value = model_.graph().find_local(output.value("name", ""));
    const auto type = element_type_named(output.value("dtype", ""));
    if (value == nullptr || value->type || !type) continue;
    value->type = type;
    value->shape.emplace();
    for (const json& size : output["shape"]) {
      value->shape->push_back(size.get<std::int64_t>() < 0 ? unknown_dim() : Dim(size.get<std::int64_t>()));
    }
    any = true;
  }
  return any;
}

void TensorRTProbe::ask_builder() {
  ask_about_known();
  report_.pieces = build_left_of(left());
}

/// Of each kind of node that fails by rule the first is asked about alone, and each that holds one, so that nothing has
/// to be searched for it.
void TensorRTProbe::ask_about_known() {
  std::set<std::string> kinds;
  for (const Node* node : left()) {
    if (bad_.contains(node) || report_.not_asked.contains(node)) continue;
    if (is_known_to_fail(*node)) {
      const auto likeness = likeness_of(*node, can_be_input);
      if (!kinds.insert(likeness ? likeness->kind : node->op_type).second) continue;
    } else if (find_inside(model_, *node, is_known_to_fail) == nullptr) {
      continue;
    }
    const Trial trial = try_nodes(ProbeLevel::builder, {node});
    if (fails(ProbeLevel::builder, trial) || (trial.is_by_sizes && is_known_to_fail(*node))) {
      add_with_alike(finding_of({node}, trial));
    }
  }
}

std::size_t TensorRTProbe::build_left_of(const Nodes& nodes) {
  for (Nodes part = left_of(nodes); !part.empty(); part = left_of(nodes)) {
    Trial trial = try_nodes(ProbeLevel::builder, part);
    if (trial.outcome == Outcome::accepted) return 1;
    if (fails(ProbeLevel::builder, trial)) {
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

void TensorRTProbe::leave_without_sizes(const Node& node, const Trial& trial) {
  const std::string why = fmt::format(
      "cut out of the network, the sizes that are supposed of its inputs contradict each other: {}", words_of(trial));
  uncertain_.emplace(&node, why);
  set_aside();
}

void TensorRTProbe::find_failing(const Nodes& nodes, Trial whole) {
  open_failure_ = words_of(whole);
  const auto count_found = [&] { return bad_.size() + uncertain_.size(); };
  const std::size_t found_before = count_found();
  for (Finding& found : find_suspects(ProbeLevel::builder, nodes, whole)) add_with_alike(std::move(found));
  if (count_found() > found_before) return;
  constexpr std::size_t few = 8;
  if (nodes.size() > few) {
    for (const Nodes& half : halves_of(nodes)) {
      const Nodes part = left_of(half);
      if (part.empty()) continue;
      Trial trial = try_nodes(ProbeLevel::builder, part);
      if (trial.is_cut_short) {
        build_left_of(part);
      } else if (fails(ProbeLevel::builder, trial)) {
        find_failing(part, std::move(trial));
      }
    }
  }
  if (count_found() > found_before) return;
  add_with_alike(find_smallest(ProbeLevel::builder, nodes, std::move(whole)));
}

std::array<TensorRTProbe::Nodes, 2> TensorRTProbe::halves_of(const Nodes& nodes) {
  const auto middle = nodes.begin() + static_cast<std::ptrdiff_t>(nodes.size() / 2);
  return {Nodes(nodes.begin(), middle), Nodes(middle, nodes.end())};
}

void TensorRTProbe::add_with_alike(Finding found) {
  for (Finding& finding : look_inside(std::move(found))) {
    add(finding);
    for (Finding& alike : findings_alike(finding)) add(std::move(alike));
  }
}

std::vector<Finding> TensorRTProbe::findings_alike(const Finding& finding) {
  std::vector<Finding> findings;
  if (finding.nodes.size() != 1 || finding.inside != nullptr) return findings;
  const Node& first = *finding.nodes.front();
  const auto wanted = likeness_of(first, can_be_input);
  if (!wanted) return findings;
  struct Asked {
    Finding finding;
    Likeness likeness;
  };
  std::vector<Asked> asked{{finding, *wanted}};
  // Where the rule knows why the first one fails, it knows which others do.
  bool is_asking = true;
  for (const Node* node : left()) {
    auto likeness = node->op_type == first.op_type ? likeness_of(*node, can_be_input) : std::nullopt;
    if (!likeness || likeness->kind != wanted->kind) continue;
    const auto same = std::find_if(asked.begin(), asked.end(),
                                   [&](const Asked& each) { return each.likeness.exact == likeness->exact; });
    const Asked* as = same == asked.end() ? nullptr : &*same;
    if (as == nullptr && is_known_to_fail(first)) {
      if (!is_known_to_fail(*node)) continue;
      as = &asked.front();
    }
    if (as != nullptr) {
      Finding& alike = findings.emplace_back(as->finding);
      alike.as = as->finding.nodes.front();
      alike.nodes = {node};
      continue;
    }
    // Of other sizes: they fail one after the other; or the first was an exception, and the rest builds at once.
    if (!is_asking) continue;
    Trial trial = try_nodes(ProbeLevel::builder, {node});
    is_asking = fails(ProbeLevel::builder, trial);
    if (!is_asking) continue;
    asked.push_back({finding_of({node}, trial), std::move(*likeness)});
    findings.push_back(asked.back().finding);
  }
  return findings;
}

std::optional<Model> TensorRTProbe::inside_of(const Node& node, std::size_t subgraph) const {
  auto model = branch_as_model(part_of(Nodes{&node}), node.name, subgraph);
  if (!model) return std::nullopt;
  infer_around_faults(*model, [](const Node&, const Error&) {});
  declare_outputs(*model);
  return model;
}

std::vector<Finding> TensorRTProbe::look_inside(Finding finding) {
  std::vector<Finding> findings;
  if (finding.nodes.size() == 1 && finding.inside == nullptr) {
    for (std::size_t i = 0; i < finding.nodes.front()->subgraphs().size(); ++i) {
      try {
        for (Finding& found : ask_inside(*finding.nodes.front(), i)) findings.push_back(std::move(found));
      } catch (const Error&) {  // alone, it needs values that nobody knows
        continue;
      }
    }
  }
  if (findings.empty()) findings.push_back(std::move(finding));
  return findings;
}

std::vector<Finding> TensorRTProbe::ask_inside(const Node& node, std::size_t subgraph) {
  auto model = inside_of(node, subgraph);
  if (!model) return {};
  TensorRTProbe search(*model, trials_, ranges_);
  ProbeReport report = search.run(ProbeLevel::builder);
  std::map<std::string, const Node*, std::less<>> own;  // by the names that they kept
  node.subgraphs().at(subgraph)->for_each_node([&](const Node& inner) { own.emplace(inner.name, &inner); });
  const auto own_of = [&](const Node* copy) {
    const auto found = copy == nullptr ? own.end() : own.find(copy->name);
    return found == own.end() ? nullptr : found->second;
  };
  std::vector<Finding> findings;
  std::set<const Node*> bad;
  for (Finding& found : report.findings) {
    const Node* outermost = own_of(found.nodes.front());
    if (outermost == nullptr) return {};  // what gives the branch its sizes
    const Node* innermost = own_of(found.inside);
    for (const Node* each : found.nodes) bad.insert(own_of(each));
    Finding& finding = findings.emplace_back();
    finding.nodes = {&node};
    finding.inside = innermost == nullptr ? outermost : innermost;
    finding.outcome = found.outcome;
    finding.words = found.words;
    if (found.nodes.size() > 1) finding.words += fmt::format(" (by {} nodes together)", found.nodes.size());
    finding.cause = found.cause;
    finding.as = own_of(found.as);
    finding.part = std::make_shared<const Model>(search.smallest_part(found));
  }
  for (const Node* copy : model->graph().nodes()) {
    const Node* inner = own_of(copy);
    const bool runs = inner != nullptr && !bad.contains(inner) && !report.not_asked.contains(copy);
    if (!runs) continue;
    report_.runs_inside.insert(inner);
    for (const Graph* innermost : inner->subgraphs()) {
      innermost->for_each_node([&](const Node& each) { report_.runs_inside.insert(&each); });
    }
  }
  for (const Node* copy : report.runs_inside) report_.runs_inside.insert(own_of(copy));
  for (auto& [layer, plugin] : report.plugins) report_.plugins[layer] = std::move(plugin);
  return findings;
}

/// A node in a branch or a body, however deep, as a model of its own.
std::optional<Model> TensorRTProbe::alone(const Node& outer, const Node& inside) const {
  const std::vector<Graph*> subgraphs = outer.subgraphs();
  for (std::size_t i = 0; i < subgraphs.size(); ++i) {
    bool holds_it = false;
    subgraphs[i]->for_each_node([&](const Node& node) { holds_it = holds_it || &node == &inside; });
    auto model = holds_it ? inside_of(outer, i) : std::nullopt;
    if (!model) continue;
    const TensorRTProbe search(*model, trials_, ranges_);
    const Node* copy = model->graph().find_node(inside.name);
    if (copy != nullptr) return search.part_of(Nodes{copy});
    const auto is_it = [&](const Node& node) { return node.name == inside.name; };
    for (const Node* node : search.nodes_) {
      if (const Node* deeper = find_inside(*model, *node, is_it)) return search.alone(*node, *deeper);
    }
  }
  return std::nullopt;
}

std::pair<const Node*, const Node*> TensorRTProbe::named_by(const json& error) const {
  const std::string name = error.value("node", "");
  const std::string op_type = error.value("op_type", "");
  // "if_1 (If)", "body (then_branch)": from the outside in.
  const auto around = error.value("local_functions", std::vector<std::string>());
  const std::string outermost = around.empty() ? name : around.front().substr(0, around.front().rfind(" ("));
  const auto node = by_name_.find(outermost);
  if (node == by_name_.end()) return {nullptr, nullptr};
  if (node->second->name == name && around.empty()) return {node->second, nullptr};
  const auto is_it = [&](const Node& inner) { return inner.name == name && inner.op_type == op_type; };
  const auto is_like_it = [&](const Node& inner) { return inner.name.empty() && inner.op_type == op_type; };
  const Node* inside = find_inside(model_, *node->second, is_it);
  return {node->second, inside != nullptr ? inside : find_inside(model_, *node->second, is_like_it)};
}

Finding TensorRTProbe::refusal(const Node& node, const Node* inside, const json& error, const json& answer) {
  Finding finding{
      .nodes = {&node}, .inside = inside, .outcome = Outcome::refused, .words = words_of_error(error), .cause = {}};
  if (answer["errors"].size() == 1) finding.words += words_beside_the_error(answer);
  const Node& refused = inside == nullptr ? node : *inside;
  const bool is_creators = error.value("message", "").find("Could not create the plugin") != std::string::npos;
  const std::string printed = is_creators ? printed_of(node, answer) : "";
  finding.cause = cause_of_refusal(refused, error, trials_.creators(), printed);
  if (finding.cause && !is_creators) finding.words = with_output(finding.words, answer);
  const bool has_wrong_inputs = finding.cause && finding.cause->cause == "plugin_inputs";
  if (has_wrong_inputs && inside == nullptr) find_number_of_inputs(node, *finding.cause);
  return finding;
}

/// What the plugin of a node printed. Where the parser found more than one error, it may have been another's: the node
/// is asked about alone.
std::string TensorRTProbe::printed_of(const Node& node, const json& answer) {
  const bool is_alone = answer["errors"].size() == 1 || trials_.is_spent();
  return printed_in(is_alone || printed_in(answer).empty() ? answer : trials_.parse(part_of({&node})).answer);
}

/// The plugin itself knows how many inputs it takes: it is tried with fewer, and with the last one more often.
void TensorRTProbe::find_number_of_inputs(const Node& node, PluginCause& cause) {
  constexpr std::size_t most = 8;
  std::vector<std::size_t> taken;
  for (std::size_t count = 1; count <= most && !trials_.is_spent(); ++count) {
    if (count == node.inputs.size() || node.inputs.empty()) continue;
    Model model = part_of({&node});
    Graph& graph = model.graph();
    Node& copy = *graph.find_node(node.name);
    while (copy.inputs.size() > count) graph.remove_last_input(copy);
    while (copy.inputs.size() < count) graph.add_input_to(copy, copy.inputs.back());
    if (trials_.parse(model).outcome == Outcome::accepted) taken.push_back(count);
  }
  if (!taken.empty()) cause.reason += fmt::format("; tried with other numbers, it takes {}", fmt::join(taken, ", "));
}

const json* TensorRTProbe::creator_in(const Node& node) const {
  const json* found = nullptr;
  const auto has_creator = [&](const Node& each) {
    found = is_standard_operator(each.domain, each.op_type) ? nullptr : creator_of(each, trials_.creators());
    return found != nullptr;
  };
  if (!has_creator(node)) static_cast<void>(find_inside(model_, node, has_creator));
  return found;
}

/// Those that TensorRT names, the longest names first, as a name may be a part of another; then the plugins.
TensorRTProbe::Nodes TensorRTProbe::suspects(const Nodes& nodes, const json& answer) const {
  std::string text;
  for (const json& message : answer.value("messages", json::array())) text += message.value("message", "") + "\n";
  Nodes suspected;
  for (const Node* node : nodes) {
    if (!node->name.empty() && names(text, node->name)) suspected.push_back(node);
  }
  std::stable_sort(suspected.begin(), suspected.end(),
                   [](const Node* a, const Node* b) { return a->name.size() > b->name.size(); });
  constexpr std::size_t most_named = 4;
  constexpr std::size_t most = 16;
  suspected.resize(std::min(suspected.size(), most_named));
  for (const Node* node : nodes) {
    const bool is_new = std::find(suspected.begin(), suspected.end(), node) == suspected.end();
    if (is_new && creator_in(*node) != nullptr && suspected.size() < most) suspected.push_back(node);
  }
  return suspected;
}

Finding TensorRTProbe::finding_of(const Nodes& part, const Trial& trial) const {
  const json& errors = trial.answer.value("errors", json::array());
  const bool is_refused = trial.outcome == Outcome::refused && !errors.empty();
  Finding finding{.nodes = part,
                  .inside = nullptr,
                  .outcome = trial.outcome,
                  .words = is_refused ? words_of_error(errors[0]) : words_of(trial),
                  .cause = {}};
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

/// Each trial of what hangs takes the whole limit: the only suspect is left out, and what is left builds; or each
/// suspect is tried by itself, all that are left of them too once one was found.
std::vector<Finding> TensorRTProbe::find_suspects(ProbeLevel level, const Nodes& nodes, const Trial& whole) {
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
  for (const Node* node : suspected) {
    if (!findings.empty() && !has_hung) break;
    const Trial trial = try_nodes(level, {node});
    if (fails(level, trial)) findings.push_back(finding_of({node}, trial));
  }
  return findings;
}

Finding TensorRTProbe::find_smallest(ProbeLevel level, const Nodes& nodes, Trial whole) {
  Trial last = std::move(whole);
  const auto chosen = [&](const std::vector<std::size_t>& indices) {
    Nodes items;
    for (const std::size_t index : indices) items.push_back(nodes[index]);
    return items;
  };
  const Nodes part = chosen(smallest_failing(nodes.size(), [&](const std::vector<std::size_t>& indices) {
    Trial trial = try_nodes(level, chosen(indices), 1.0);
    const bool failed = fails(level, trial);
    if (failed) last = std::move(trial);
    return failed;
  }));
  return finding_of(part, last);
}

}  // namespace graft::inspect
