// Plans the node that a rule inserts: its inputs and outputs follow from the region, unless the rule lists them with
// `inputs` and `outputs`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <utility>

#include "onnx/operator_node.hpp"
#include "onnx/text.hpp"
#include "rules/replace/new_node.hpp"

namespace graft::rules {
namespace {

/// Returns whether a value has the type and rank of numbers computed from shapes: not floating-point, and rank 0 or 1.
/// The new operator need not read such values, even if the replaced nodes read them.
bool is_number_of_shape(const onnx::Value& value) {
  return value.type && !is_floating_point(*value.type) && value.rank().value_or(0) <= 1;
}

/// Returns the tensor that an entry of the rule's list `inputs` selects, by index or name. Returns null if the entry
/// leaves the input out or names a constant of the pattern, and then appends the entry to `inputs` itself.
const onnx::Value* find_input(const Region& region, const RuleValue& wanted, std::vector<NodeInput>& inputs) {
  if (const auto* index = std::get_if<std::int64_t>(&wanted.data)) {
    if (*index < 0 || static_cast<std::size_t>(*index) >= region.inputs.size()) {
      fail_at(wanted.place, fmt::format("{} has no input {}; the index counts from 0, and the number of inputs is {}",
                                        region.name, *index, region.inputs.size()));
    }
    const onnx::Value* value = region.inputs[static_cast<std::size_t>(*index)];
    if (value == nullptr) inputs.emplace_back();
    return value;
  }
  const auto* name = std::get_if<std::string>(&wanted.data);
  if (name == nullptr)
    fail_at(wanted.place, "each entry of `inputs` must be the index of an input or the name of a tensor");
  if (*name == "_") {
    inputs.emplace_back();
    return nullptr;
  }
  if (region.match != nullptr) {
    const std::string plain = name->starts_with('@') ? name->substr(1) : *name;
    if (const auto found = region.match->values.find(plain); found != region.match->values.end()) return found->second;
    if (const auto found = region.match->constants.find(plain); found != region.match->constants.end()) {
      inputs.push_back({plain, found->second, true});
      return nullptr;
    }
    std::vector<std::string> known;
    for (const auto& [value_name, value] : region.match->values) known.push_back(value_name);
    fail_at(wanted.place, fmt::format("the pattern has no name {}; its names are {}", *name, fmt::join(known, ", ")));
  }
  const onnx::Value* value = region.graph->find(*name);
  if (value == nullptr) {
    fail_at(wanted.place, fmt::format("the model has no tensor '{}'{}", *name,
                                      did_you_mean(*name, names_of(region.graph->values()))));
  }
  return value;
}

void check_closed(const Rule& rule, const Region& region, const std::unordered_set<const onnx::Value*>& listed) {
  std::vector<std::string> missing;
  for (const onnx::Value* input : region.inputs) {
    if (!listed.contains(input) && !is_number_of_shape(*input)) missing.push_back("'" + input->name + "'");
  }
  if (missing.empty()) return;
  fail_at(rule.place,
          fmt::format("{}: the nodes also read {}, which `inputs` does not list; add what is missing to `inputs`",
                      region.name, fmt::join(missing, ", ")));
}

std::vector<NodeInput> plan_inputs(const Rule& rule, const Region& region) {
  std::vector<NodeInput> inputs;
  if (!rule.inputs) {
    if (region.match != nullptr) {
      if (!region.match->values.contains("x")) {
        fail_at(
            rule.place,
            "`inputs` is missing; list the names of the pattern that the operator reads, in the order of its inputs");
      }
      return {to_input(&region.match->value("x"))};
    }
    for (const onnx::Value* input : region.inputs) {
      const bool left_out = region.nodes.size() > 1 && is_number_of_shape(*input);
      if (!left_out) inputs.push_back(to_input(input));
    }
    return inputs;
  }
  std::unordered_set<const onnx::Value*> listed;
  for (const RuleValue& wanted : *rule.inputs) {
    const onnx::Value* value = find_input(region, wanted, inputs);
    if (value == nullptr) continue;
    listed.insert(value);
    inputs.push_back(to_input(value));
  }
  if (region.match == nullptr && region.nodes.size() > 1) check_closed(rule, region, listed);
  return inputs;
}

/// Returns, for messages, a description of the first node outside `region` that reads the tensor `name`, or "an output
/// of the graph" if no node does.
std::string user_of(const Region& region, const std::string& name) {
  const onnx::Value* value = region.graph->find(name);
  for (const onnx::Use& use : value->uses) {
    if (std::find(region.nodes.begin(), region.nodes.end(), use.node) == region.nodes.end())
      return onnx::describe(*use.node);
  }
  return "an output of the graph";
}

std::vector<std::string> plan_outputs(const Rule& rule, const Region& region) {
  std::vector<std::string> names;
  for (const onnx::Value* output : region.outputs) names.push_back(output->name);
  if (rule.outputs.empty()) return names;
  for (const std::string& name : names) {
    if (std::find(rule.outputs.begin(), rule.outputs.end(), name) == rule.outputs.end()) {
      fail_at(rule.place,
              fmt::format("{}: '{}' is also used outside the replaced nodes ({}), but `outputs` does not list it",
                          region.name, name, user_of(region, name)));
    }
  }
  for (const std::string& name : rule.outputs) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fail_at(rule.place, fmt::format("{}: there is no output '{}'; the outputs of the replaced nodes are {}",
                                      region.name, name, fmt::join(names, ", ")));
    }
  }
  return rule.outputs;
}

void check_counts(const Rule& rule, const Region& region, const NewNode& node) {
  const auto counts = node.with.port_counts();
  if (!counts) return;
  const auto [fewest, most, outputs] = *counts;
  if (node.inputs.size() < fewest || node.inputs.size() > most) {
    std::vector<std::string> names;
    for (const NodeInput& input : node.inputs) names.push_back(input.name.empty() ? "_" : input.name);
    fail_at(rule.place, fmt::format("{}: the new node would have {} inputs ({}), but {} must have {}\nSelect and order "
                                    "the inputs with `inputs`",
                                    region.name, node.inputs.size(), fmt::join(names, ", "), node.with.to_string(),
                                    fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most)));
  }
  if (node.outputs.size() > outputs) {
    std::string users;
    for (const std::string& name : node.outputs) {
      users += fmt::format("{}'{}' ({})", users.empty() ? "" : ", ", name, user_of(region, name));
    }
    fail_at(rule.place, fmt::format("{}: {} of its tensors are used outside the replaced nodes, but the number of "
                                    "outputs of {} is at most {}: {}",
                                    region.name, node.outputs.size(), node.with.to_string(), outputs, users));
  }
}

}  // namespace

NodeInput to_input(const onnx::Value* value) {
  if (value == nullptr) return {};
  return {value->name, value->constant()};
}

NewNode plan_node(const Rule& rule, const Region& region) {
  for (const onnx::Node* node : region.nodes) {
    if (!node->subgraphs().empty())
      fail_at(rule.place,
              fmt::format("{}: {} has subgraphs; rules cannot replace such nodes", region.name, onnx::describe(*node)));
  }
  NewNode planned{rule.with, nullptr, {}, {}, {}, rule.int8, ""};
  planned.inputs = plan_inputs(rule, region);
  planned.outputs = plan_outputs(rule, region);
  plan_attributes(rule, region, planned);
  check_counts(rule, region, planned);
  return planned;
}

Proposal propose_node(const Rule& rule, const Region& region, const NewNode& node) {
  Proposal proposal = propose(rule, region, node.op == nullptr ? node.with.to_string() : passes::to_text(*node.op));
  for (const NodeInput& input : node.inputs) {
    onnx::Value* value = input.name.empty() || input.constant ? nullptr : region.graph->find(input.name);
    if (value != nullptr) proposal.inputs.push_back(value);
  }
  proposal.edit = [node](onnx::Graph& graph) { insert(node, graph); };
  return proposal;
}

}  // namespace graft::rules
