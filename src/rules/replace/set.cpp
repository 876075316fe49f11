// Changes values: attributes of selected nodes (`set`) and elements of constants (`constant`).
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "core/suggest.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/schema.hpp"
#include "onnx/text.hpp"
#include "rules/captured_values.hpp"
#include "rules/kinds.hpp"

namespace graft::rules {
namespace {

void set_attributes(RuleRun& run, const Region& region) {
  if (region.nodes.size() != 1 || region.outputs.empty()) {
    fail_at(run.rule.place, fmt::format("{}: attributes can be set only on single nodes whose result is used; select "
                                        "such nodes with `op` or `name`",
                                        region.name));
  }
  const onnx::Node& node = *region.nodes.front();
  const onnx::OperatorSchema* schema =
      node.domain.empty() ? onnx::find_schema(node.op_type, onnx::newest_opset) : nullptr;
  std::map<std::string, AttributeValue> values;
  std::string text = node.op_type;
  for (const auto& [name, value] : evaluate_attributes(run.rule.attributes, region)) {
    if (schema != nullptr && !schema->has_attribute(name)) {
      fail_at(value.place, no_attribute(node.op_type, name, schema->attribute_names()));
    }
    std::optional<AttributeType> type = schema == nullptr ? std::nullopt : schema->attribute_type(name);
    if (!type && node.attribute(name) != nullptr) {
      if (const auto old = node.attribute(name)->value()) type = graft::type_of(*old);
    }
    values[name] = to_typed_attribute(value, name, type);
    text += fmt::format(" {}={}", name, graft::to_string(values[name]));
  }
  Proposal proposal = propose(run.rule, region, text);
  for (onnx::Value* input : region.inputs) {
    if (input != nullptr) proposal.inputs.push_back(input);
  }
  proposal.edit = [values, output = region.outputs[0]->name](onnx::Graph& graph) {
    onnx::Node* target = graph.find(output)->producer;
    for (const auto& [name, value] : values) target->attributes[name] = onnx::NodeAttribute(value);
  };
  apply(run, region, proposal);
}

onnx::TensorData new_constant(const Rule::Entry& entry, const onnx::TensorData& old) {
  auto numbers = to_numbers(entry.value.data);
  if (!numbers) fail_at(entry.value.place, "the value of a constant must be a number or a list of numbers");
  if (!is_list(entry.value.data)) {  // one number for all elements
    numbers = std::vector<double>(static_cast<std::size_t>(old.element_count()), numbers->front());
  }
  if (static_cast<std::int64_t>(numbers->size()) != old.element_count()) {
    fail_at(entry.value.place, fmt::format("the rule lists {} numbers, but the constant '{}' has {} elements",
                                           numbers->size(), entry.name.text(), old.element_count()));
  }
  return onnx::TensorData::from_numbers(old.type, old.dims, *numbers);
}

/// Returns the nodes of `graph` that read a value, each node once.
std::vector<onnx::Node*> users_of(const onnx::Value& value, const onnx::Graph& graph) {
  std::vector<onnx::Node*> users;
  for (const onnx::Use& use : value.uses) {
    if (use.node->graph == &graph && std::find(users.begin(), users.end(), use.node) == users.end()) {
      users.push_back(use.node);
    }
  }
  return users;
}

void set_constant(RuleRun& run, const Rule::Entry& entry) {
  onnx::Graph& graph = run.graph();
  const onnx::Value* value = graph.find_local(entry.name.text());
  const auto old = value == nullptr ? std::nullopt : value->constant();
  if (!old) {
    record_miss(run, fmt::format("there is no constant '{}'{}", entry.name.text(),
                                 did_you_mean(entry.name.text(), names_of(graph.values()))));
    return;
  }
  onnx::TensorData fresh = new_constant(entry, *old);
  const std::vector<onnx::Node*> users = users_of(*value, graph);
  if (users.empty()) {
    record_miss(run, fmt::format("the rule was not applied, because no node reads the constant '{}'", value->name));
    return;
  }
  ++run.outcome.matched;
  const Region region = make_region(fmt::format("the constant '{}'", value->name), users);
  Proposal proposal = propose(run.rule, region, to_string(fresh));
  for (onnx::Value* input : region.inputs) {
    if (input != nullptr && !input->constant()) proposal.inputs.push_back(input);
  }
  // The uses are redirected to a new constant: the old one may be the output of a node.
  proposal.edit = [name = value->name, fresh = std::move(fresh)](onnx::Graph& target) {
    onnx::Value* before = target.find_local(name);
    onnx::Value* after = target.add_constant(name, fresh);
    for (const onnx::Use& use : std::vector<onnx::Use>(before->uses)) {
      use.node->graph->set_input(*use.node, use.index, after);
    }
  };
  apply(run, region, proposal);
}

}  // namespace

void set_attributes(RuleRun& run) {
  for (const Region& region : select_regions(run)) set_attributes(run, region);
}

void set_constants(RuleRun& run) {
  for (const Rule::Entry& entry : run.rule.entries) set_constant(run, entry);
}

}  // namespace graft::rules
