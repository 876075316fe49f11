// Plans the conversion of a scope: the nodes that its results need, their order, and which of them are branches or
// loops.
#include "import/tensorflow/scope.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "import/tensorflow/dropout.hpp"

namespace graft::tensorflow {
namespace {

constexpr int deepest = 8;

bool is_branch(const NodeDef& node) { return node.op() == "If" || node.op() == "StatelessIf"; }
bool is_loop(const NodeDef& node) { return node.op() == "While" || node.op() == "StatelessWhile"; }

bool is_constant_enter(const NodeDef& node) {
  const auto found = node.attr().find("is_constant");
  return found != node.attr().end() && found->second.b();
}

}  // namespace

bool is_identity(const NodeDef& node) {
  constexpr std::array<std::string_view, 6> kinds = {"Identity",        "StopGradient", "Snapshot",
                                                     "PreventGradient", "RefIdentity",  "CheckNumerics"};
  return std::find(kinds.begin(), kinds.end(), node.op()) != kinds.end();
}

NodeSet::NodeSet(GraphDef& graph) {
  for (NodeDef& node : *graph.mutable_node()) {
    if (node.name().empty()) {
      throw Error(fmt::format("a node of type {} has no name; every node needs a name", node.op()));
    }
    if (!by_name.emplace(node.name(), &node).second)
      throw Error(fmt::format("two nodes have the name '{}'; every node needs a name of its own", node.name()));
  }
  for (const NodeDef& node : graph.node()) {
    if (node.op() != "Switch") continue;
    const auto inputs = data_inputs(node);
    if (inputs.size() != 2) continue;
    const auto value = by_name.find(inputs[0].node);
    const auto predicate = by_name.find(inputs[1].node);
    if (value == by_name.end() || predicate == by_name.end()) continue;
    if (value->second->op() == "Merge" && predicate->second->op() == "LoopCond") {
      loop_switches[predicate->first].push_back(&node);
    }
  }
}

Scope::Scope(Reading& reading, std::shared_ptr<const NodeSet> nodes, std::map<TensorName, std::size_t> arguments,
             std::vector<TensorName> results, int depth)
    : reading_(reading),
      nodes_(std::move(nodes)),
      arguments_(std::move(arguments)),
      results_(std::move(results)),
      depth_(depth) {}

void Scope::plan() {
  if (depth_ > deepest) throw Error(fmt::format("branches and loops are nested deeper than {} levels", deepest));
  sort();
  if (order_.size() > reading_.room_for_plans)
    throw Error(
        "the bodies of branches and loops have many times more nodes than the file, which Graft does not support");
  reading_.room_for_plans -= order_.size();
  reading_.needed.insert(order_.begin(), order_.end());
  check_known();
}

// ---- Finding

NodeDef* Scope::find(const std::string& name) const {
  const auto found = nodes_->by_name.find(name);
  return found == nodes_->by_name.end() ? nullptr : found->second;
}

NodeDef& Scope::find(const std::string& name, const NodeDef& reader) const {
  if (NodeDef* found = find(name)) return *found;
  throw Error(fmt::format("node '{}' ({}) reads '{}', which is not in the file", reader.name(), reader.op(), name));
}

const NodeDef* Scope::node_of(const TensorName& name) const {
  return arguments_.contains(name) ? nullptr : find(name.node);
}

TensorName Scope::source_of(TensorName name) const {
  constexpr int most = 1000;
  for (int i = 0; i < most; ++i) {
    const NodeDef* node = node_of(name);
    if (node == nullptr || !is_identity(*node)) return name;
    const auto inputs = data_inputs(*node);
    if (inputs.empty()) return name;
    name = inputs[0];
  }
  return name;
}

std::optional<std::size_t> Scope::argument(const TensorName& name) const {
  const auto found = arguments_.find(source_of(name));
  return found == arguments_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<const NodeDef*> Scope::readers_of_argument(std::size_t index) const {
  std::vector<const NodeDef*> readers;
  for (const NodeDef* node : order_) {
    if (is_identity(*node)) continue;
    const auto& inputs = reads_.at(node);
    if (std::any_of(inputs.begin(), inputs.end(), [&](const TensorName& input) { return argument(input) == index; })) {
      readers.push_back(node);
    }
  }
  return readers;
}

// ---- Switch and Merge of TensorFlow 1

/// Returns the value of a predicate that is constant in the file, or nothing for other predicates. `depth` is the
/// number of nodes that were followed already; after 32 nodes the search ends without a result.
std::optional<bool> Scope::constant_predicate(const TensorName& name, int depth) const {
  constexpr int far = 32;
  const NodeDef* node = node_of(name);
  if (node == nullptr || depth > far) return std::nullopt;
  const auto inputs = data_inputs(*node);
  if (node->op() == "Identity" || node->op() == "PlaceholderWithDefault" || node->op() == "Switch") {
    if (inputs.empty()) return std::nullopt;
    return constant_predicate(inputs[0], depth + 1);
  }
  if (node->op() == "LogicalNot" && !inputs.empty()) {
    const auto value = constant_predicate(inputs[0], depth + 1);
    return value ? std::optional(!*value) : std::nullopt;
  }
  if (node->op() != "Const" || !node->attr().contains("value")) return std::nullopt;
  const auto scalar = read_scalar(node->attr().at("value").tensor());
  return scalar ? std::optional(*scalar != 0) : std::nullopt;
}

/// Returns whether a Switch or Merge is part of a loop, as opposed to a branch.
bool Scope::is_of_loop(const NodeDef& node) const {
  const auto inputs = data_inputs(node);
  if (node.op() == "Switch") {
    const NodeDef* predicate = inputs.size() == 2 ? find(inputs[1].node) : nullptr;
    return predicate != nullptr && predicate->op() == "LoopCond";
  }
  return std::any_of(inputs.begin(), inputs.end(), [&](const TensorName& input) {
    const NodeDef* source = find(input.node);
    return source != nullptr && (source->op() == "Enter" || source->op() == "NextIteration");
  });
}

/// Returns the Switch that begins the innermost branch around a tensor, and which output of that Switch (true or false)
/// leads to the tensor. Inner branches that end in a Merge before the tensor are skipped.
std::optional<Scope::Side> Scope::side_of(const TensorName& name) const {
  constexpr int most_steps = 4096;
  // Each tensor is stored with the number of inner branches that contain it.
  std::vector<std::pair<TensorName, int>> open{{name, 0}};
  std::set<std::pair<std::string, int>> seen;
  for (int step = 0; step < most_steps && !open.empty() && reading_.room_for_searches > 0; ++step) {
    --reading_.room_for_searches;
    auto [current, depth] = open.back();
    open.pop_back();
    const NodeDef* node = node_of(current);
    if (node == nullptr) continue;
    const bool is_switch = node->op() == "Switch" && !is_of_loop(*node);
    if (is_switch && depth == 0) return Side{node, current.output == 1};
    if (is_switch) --depth;
    if (node->op() == "Merge" && !is_of_loop(*node)) ++depth;
    if (!seen.emplace(current.node, depth).second) continue;
    for (const TensorName& input : data_inputs(*node)) open.emplace_back(input, depth);
    // A constant inside a branch depends on the Switch through a control input only: `switch_t` or `switch_f`, which
    // are Identities of the two sides of the Switch.
    for (const std::string& input : node->input()) {
      if (is_control(input)) open.emplace_back(TensorName{input.substr(1), 0}, depth);
    }
  }
  return std::nullopt;
}

/// Returns the input of a Merge that is selected if the predicate is constant, otherwise nothing.
std::optional<TensorName> Scope::arriving(const NodeDef& merge) const {
  for (const TensorName& input : data_inputs(merge)) {
    const auto side = side_of(input);
    if (!side) continue;
    const auto inputs = data_inputs(*side->split);
    if (inputs.size() != 2) continue;
    const auto predicate = constant_predicate(inputs[1]);
    if (predicate && *predicate == side->is_true) return input;
  }
  return std::nullopt;
}

std::vector<TensorName> Scope::merge_inputs(const NodeDef& merge) const {
  std::vector<TensorName> inputs = data_inputs(merge);
  for (const TensorName& input : inputs) {
    const NodeDef* node = node_of(input);
    if (node != nullptr && (node->op() == "Enter" || node->op() == "NextIteration")) {
      throw Error(
          fmt::format("node '{}' (Merge) is inside a loop of TensorFlow 1, and a node outside reads it: select outputs "
                      "after the loop with {}",
                      merge.name(), setting_name(Setting::kept_outputs)));
    }
  }
  if (const auto one = arriving(merge)) return {*one};
  // Both sides are computed, and Where selects one of them.
  if (inputs.size() != 2)
    throw Error(fmt::format("node '{}' (Merge) has {} inputs; it must have 2", merge.name(), inputs.size()));
  for (const TensorName& input : inputs) {
    const auto side = side_of(input);
    if (!side) continue;
    const auto split = data_inputs(*side->split);
    if (split.size() != 2) continue;
    const bool first_is_true = (&input == &inputs[0]) == side->is_true;
    return first_is_true ? std::vector{split[1], inputs[0], inputs[1]} : std::vector{split[1], inputs[1], inputs[0]};
  }
  throw Error(
      fmt::format("node '{}' (Merge): its inputs must be the two branches of a Switch, but do not depend on a Switch",
                  merge.name()));
}

// ---- Branches and loops

/// Returns the function in an attribute as a scope. Its arguments are the inputs of the node from `first_input` on.
std::unique_ptr<Scope> Scope::function_body(const NodeDef& node, const std::string& attribute,
                                            std::size_t first_input) {
  const auto found = node.attr().find(attribute);
  if (found == node.attr().end() || found->second.value_case() != AttrValue::kFunc) {
    throw Error(fmt::format("node '{}' ({}) has no attribute `{}`, which must name a function", node.name(), node.op(),
                            attribute));
  }
  GraphDef& graph = reading_.bodies.emplace_back();
  const auto inputs = data_inputs(node);
  NodeDef& call = *graph.add_node();
  call.set_name(fmt::format("{}/{}", node.name(), attribute));
  call.set_op("PartitionedCall");
  (*call.mutable_attr())["f"] = found->second;
  std::map<TensorName, std::size_t> arguments;
  for (std::size_t i = first_input; i < inputs.size(); ++i) {
    // No node can have such a name, because parse_tensor_name() splits off the number.
    const TensorName name{call.name() + ":argument", static_cast<std::int64_t>(i)};
    arguments.emplace(name, i - first_input);
    call.add_input(fmt::format("{}:{}", name.node, name.output));
  }
  std::size_t count = 0;
  for (const FunctionDef& function : reading_.library.function()) {
    if (function.signature().name() == found->second.func().name()) {
      count = static_cast<std::size_t>(function.signature().output_arg_size());
    }
  }
  std::vector<TensorName> results;
  for (std::size_t i = 0; i < count; ++i) {
    NodeDef& result = *graph.add_node();
    result.set_name(fmt::format("{}/{}:result", call.name(), i));
    result.set_op("Identity");
    result.add_input(fmt::format("{}:{}", call.name(), i));
    results.push_back({result.name(), 0});
  }
  inline_calls(graph, reading_.library, reading_.room_for_calls);
  for (std::size_t left = remove_dropout(graph); left > 0; --left) {
    reading_.origin.leave_out("dropout", "it is for training");
  }
  auto scope = std::make_unique<Scope>(reading_, std::make_shared<NodeSet>(graph), std::move(arguments),
                                       std::move(results), depth_ + 1);
  scope->plan();
  return scope;
}

std::vector<TensorName> Scope::plan_branches(const NodeDef& node) {
  auto inputs = data_inputs(node);
  if (inputs.empty())
    throw Error(
        fmt::format("node '{}' ({}) has no input; its first input must be the condition", node.name(), node.op()));
  BranchPlan plan;
  plan.when_true = function_body(node, "then_branch", 1);
  plan.when_false = function_body(node, "else_branch", 1);
  if (plan.when_true->results().size() != plan.when_false->results().size()) {
    throw Error(fmt::format("node '{}' ({}): its branches have {} and {} results; the numbers must be equal",
                            node.name(), node.op(), plan.when_true->results().size(),
                            plan.when_false->results().size()));
  }
  branches_.emplace(&node, std::move(plan));
  return inputs;
}

std::vector<TensorName> Scope::plan_loop(const NodeDef& node) {
  LoopPlan plan;
  plan.initial = data_inputs(node);
  plan.condition = function_body(node, "cond", 0);
  plan.body = function_body(node, "body", 0);
  if (plan.condition->results().size() != 1 || plan.body->results().size() != plan.initial.size()) {
    throw Error(fmt::format(
        "node '{}' ({}): its condition and its body have {} and {} results; they must have 1 and {}", node.name(),
        node.op(), plan.condition->results().size(), plan.body->results().size(), plan.initial.size()));
  }
  auto inputs = plan.initial;
  loops_.emplace(&node, std::move(plan));
  return inputs;
}

/// Plans a loop of TensorFlow 1 (Enter -> Merge <- NextIteration, Merge -> Switch -> body or Exit; all Switches read
/// the same LoopCond). Returns the tensors that the loop reads: the initial values of its variables, then its captures.
std::vector<TensorName> Scope::plan_frame(const NodeDef& loop_condition) {
  const auto refuse = [&](std::string_view what) {
    throw Error(fmt::format("node '{}' (LoopCond): a loop of TensorFlow 1 {}", loop_condition.name(), what));
  };
  const auto found = nodes_->loop_switches.find(loop_condition.name());
  const auto predicate = data_inputs(loop_condition);
  if (found == nodes_->loop_switches.end() || predicate.size() != 1) refuse("has no variables");
  LoopPlan plan;
  std::map<TensorName, std::size_t> of_condition;
  std::map<TensorName, std::size_t> of_body;
  std::vector<TensorName> next;
  for (const NodeDef* split : found->second) {
    const std::string merge = data_inputs(*split)[0].node;
    std::optional<TensorName> first;
    std::optional<TensorName> again;
    for (const TensorName& input : data_inputs(*find(merge))) {
      const NodeDef& node = find(input.node, *find(merge));
      const auto inner = data_inputs(node);
      if (inner.size() != 1)
        refuse(fmt::format("contains '{}' ({}), which must have one input", node.name(), node.op()));
      if (node.op() == "Enter") first = inner[0];
      if (node.op() == "NextIteration") again = inner[0];
    }
    if (!first || !again)
      refuse(fmt::format("has '{}' (Merge), whose inputs are not an Enter and a NextIteration", merge));
    of_condition.emplace(TensorName{merge, 0}, plan.initial.size());
    of_body.emplace(TensorName{split->name(), 1}, plan.initial.size());
    plan.initial.push_back(*first);
    next.push_back(*again);
  }
  plan.condition = std::make_unique<Scope>(reading_, nodes_, std::move(of_condition), predicate, depth_ + 1);
  plan.body = std::make_unique<Scope>(reading_, nodes_, std::move(of_body), std::move(next), depth_ + 1);
  plan.condition->plan();
  plan.body->plan();
  plan.captures = plan.condition->captures();
  plan.captures.insert(plan.captures.end(), plan.body->captures().begin(), plan.body->captures().end());
  auto inputs = plan.initial;
  inputs.insert(inputs.end(), plan.captures.begin(), plan.captures.end());
  loops_.emplace(&loop_condition, std::move(plan));
  return inputs;
}

/// Returns a list of one element: the name of the loop's result that an Exit node outputs. Result i of the loop has the
/// name of output i of its LoopCond. Throws Error if the node belongs to no loop.
std::vector<TensorName> Scope::exit_of(const NodeDef& node) const {
  const auto inputs = data_inputs(node);
  const NodeDef* split = inputs.size() == 1 ? find(inputs[0].node) : nullptr;
  if (split != nullptr && split->op() == "Switch" && data_inputs(*split).size() == 2) {
    const std::string condition = data_inputs(*split)[1].node;
    const auto found = nodes_->loop_switches.find(condition);
    if (found != nodes_->loop_switches.end()) {
      const auto at = std::find(found->second.begin(), found->second.end(), split);
      if (at != found->second.end()) return {TensorName{condition, at - found->second.begin()}};
    }
  }
  throw Error(fmt::format("node '{}' (Exit) does not belong to a loop", node.name()));
}

// ---- Order

std::vector<TensorName> Scope::inputs_of(const NodeDef& node) {
  if (node.op() == "Merge") return merge_inputs(node);
  if (node.op() == "LoopCond") return plan_frame(node);
  if (node.op() == "Exit") return exit_of(node);
  if (is_branch(node)) return plan_branches(node);
  if (is_loop(node)) return plan_loop(node);
  if (node.op() == "Enter") {
    const auto inputs = data_inputs(node);
    if (depth_ == 0 || inputs.size() != 1 || !is_constant_enter(node)) {
      throw Error(
          fmt::format("node '{}' (Enter) belongs to a loop of TensorFlow 1 that does not consist of Enter, Merge, "
                      "Switch, NextIteration, LoopCond and Exit; freeze the graph from TensorFlow 2 with "
                      "convert_variables_to_constants_v2(f, lower_control_flow=False)",
                      node.name()));
    }
    captures_.push_back(inputs[0]);
    return {};
  }
  return data_inputs(node);
}

void Scope::sort() {
  enum class State : std::uint8_t { open, done };
  std::unordered_map<const NodeDef*, State> states;
  std::vector<std::pair<NodeDef*, std::size_t>> stack;
  const auto push = [&](NodeDef& node) {
    const auto [entry, is_new] = states.emplace(&node, State::open);
    if (is_new) {
      reads_.emplace(&node, inputs_of(node));
      stack.emplace_back(&node, 0);
    } else if (entry->second == State::open) {
      throw Error(fmt::format("node '{}' ({}) depends on itself", node.name(), node.op()));
    }
  };
  for (const TensorName& result : results_) {
    if (arguments_.contains(result)) continue;
    NodeDef* last = find(result.node);
    if (last == nullptr) throw Error(fmt::format("'{}' is read, but is not in the file", to_string(result)));
    if (!states.contains(last)) push(*last);
    while (!stack.empty()) {
      NodeDef* node = stack.back().first;
      const std::size_t next = stack.back().second;
      const auto& inputs = reads_.at(node);
      if (next == inputs.size()) {
        states[node] = State::done;
        order_.push_back(node);
        stack.pop_back();
        continue;
      }
      ++stack.back().second;
      if (arguments_.contains(inputs[next])) continue;
      NodeDef& input = find(inputs[next].node, *node);
      if (const auto state = states.find(&input); state == states.end() || state->second == State::open) push(input);
    }
  }
}

/// Adds the unknown operators of this scope to `reading_.unknown`, so that all of them are reported together.
void Scope::check_known() {
  constexpr std::array<std::string_view, 13> here = {
      "Const", "Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "Switch", "Merge", "Enter", "Exit", "LoopCond",
      "If",    "StatelessIf", "While",         "StatelessWhile"};
  for (const NodeDef* node : order_) {
    const bool is_here = std::find(here.begin(), here.end(), node->op()) != here.end();
    if (!is_here && find_converter(node->op()) == nullptr) reading_.unknown[node->op()].push_back(node->name());
  }
}

}  // namespace graft::tensorflow
