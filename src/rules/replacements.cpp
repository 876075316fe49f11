// Passes rules_before and rules_after: apply the user's rules that replace, remove and set. Pass
// fuse_library_operators: applies the rules of libraries of operators. Each change is proven like any other rewrite. A
// rule of a library with the operator Swish:
//
//   - match: y = Mul(x, Sigmoid(x))     y = Mul(x, Sigmoid(x))   becomes   y = Swish(x)
//     with: Swish
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "passes/fuse.hpp"
#include "passes/pipeline.hpp"
#include "passes/rewriter.hpp"
#include "rules/library_fusions.hpp"
#include "rules/regions.hpp"
#include "rules/rule_passes.hpp"

namespace graft::rules {
namespace {

using Kind = Rule::Kind;

/// An input of the new node. A constant is stored here too, since a copy of the region need not hold it.
struct PlannedInput {
  std::string name;
  std::optional<onnx::TensorData> constant;
  bool is_new = false;  ///< Whether the constant is not yet a tensor of the model.
};

/// The new node, independent of the graph into which it is inserted.
struct Plan {
  RuleOperator with;
  std::shared_ptr<const Operator> op;
  std::map<std::string, AttributeValue> attributes;
  std::vector<PlannedInput> inputs;
  std::vector<std::string> outputs;
  std::optional<Rule::Int8> int8;
  std::string note;
};

onnx::Value* add_scale(onnx::Graph& graph, const std::string& name, double scale) {
  return graph.add_constant(name + "_scale", onnx::TensorData::scalar_of(onnx::ElementType::f32, scale));
}

void make(const Plan& plan, onnx::Graph& graph) {
  std::vector<onnx::Value*> inputs;
  for (const PlannedInput& input : plan.inputs) {
    onnx::Value* value = input.is_new || input.name.empty() ? nullptr : graph.find(input.name);
    if (value == nullptr && input.constant) value = graph.add_constant(input.name, *input.constant);
    if (value == nullptr && !input.name.empty()) {
      throw Error(fmt::format("'{}' is not available in the graph in which the operator is inserted", input.name));
    }
    inputs.push_back(value);
  }
  std::vector<onnx::Value*> outputs;
  for (const std::string& name : plan.outputs) outputs.push_back(graph.find(name));
  onnx::Node* before = outputs.front()->producer;
  std::vector<std::string> hints = plan.outputs;
  onnx::Value* zero = nullptr;
  if (plan.int8) {
    zero = graph.add_constant("zero", onnx::TensorData::scalar_of(onnx::ElementType::i8, 0));
    onnx::Value* scale = add_scale(graph, inputs[0]->name, plan.int8->input_scale);
    onnx::Node* quantize =
        graph.add_node("QuantizeLinear", {inputs[0], scale, zero}, {inputs[0]->name + "_int8"}, before);
    quantize->output()->type = onnx::ElementType::i8;
    quantize->output()->shape = inputs[0]->shape;
    inputs[0] = quantize->output();
    hints = {plan.outputs[0] + "_int8"};
  }
  onnx::Node* node = nullptr;
  if (plan.op != nullptr) {
    node = add_operator_node(graph, *plan.op, std::move(inputs), hints, before);
  } else {
    if (!plan.with.domain.empty()) graph.root().opset_imports.emplace(plan.with.domain, 1);
    node = graph.add_node(plan.with.op_type, std::move(inputs), hints, before, plan.with.domain);
    for (const auto& [name, value] : plan.attributes) node->attributes.emplace(name, onnx::NodeAttribute(value));
  }
  node->name = before->name.empty() ? plan.outputs[0] : before->name;
  if (!plan.note.empty()) node->metadata[std::string(onnx::keep_note)] = plan.note;
  if (plan.int8) {
    node->output()->type = onnx::ElementType::i8;
    node->output()->shape = outputs[0]->shape;
    onnx::Value* scale = add_scale(graph, plan.outputs[0], plan.int8->output_scale);
    node = graph.add_node("DequantizeLinear", {node->output(), scale, zero}, plan.outputs, before);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    graph.move_output(*outputs[i]->producer, outputs[i]->output_index, *node, i);
  }
  graph.topological_sort();
}

std::vector<std::string> tensor_names(const onnx::Graph& graph) {
  std::vector<std::string> names;
  for (const onnx::Value* value : graph.values()) names.push_back(value->name);
  return names;
}

/// Returns whether a value is computed from shapes, as integers of low rank are. An operator that replaces a region
/// does not need such values.
bool is_number_of_shape(const onnx::Value& value) {
  return value.type && !is_floating_point(*value.type) && value.rank().value_or(0) <= 1;
}

Region region_of(const onnx::Match& match, onnx::Graph& graph) {
  Region region{fmt::format("the pattern at {}", onnx::describe(*match.root)), &graph, match.nodes, {}, {}};
  for (onnx::Value* output : match.root->outputs) {
    if (output != nullptr && !output->is_unused()) region.outputs.push_back(output);
  }
  return region;
}

/// The types and shapes of the inputs of an operator, as far as the model has them.
struct InputFacts {
  std::vector<DType> dtypes;
  std::vector<Shape> shapes;
  bool are_shapes_known = true;
};

/// Throws Error naming a tensor whose type is unknown, or in which no kernel computes.
InputFacts facts_of_inputs(const Plan& plan, const onnx::Graph& graph) {
  InputFacts facts;
  const std::size_t shape_inputs = plan.with.graft == nullptr ? 0 : plan.with.graft->shape_input_count();
  const std::size_t plan_inputs_with_shapes = plan.inputs.size() - std::min(shape_inputs, plan.inputs.size());
  for (const PlannedInput& input : plan.inputs) {
    if (input.name.empty()) break;  // optional inputs that are left out are the last
    const onnx::Value* value = input.is_new ? nullptr : graph.find(input.name);
    std::optional<onnx::ElementType> element;
    if (value != nullptr) element = value->type;
    if (value == nullptr && input.constant) element = input.constant->type;
    const auto dtype = element ? to_dtype(*element) : std::nullopt;
    if (!dtype) {
      throw Error(fmt::format("'{}' is {}, a type that {} does not support", input.name,
                              element ? to_string(*element) : "of an unknown type", plan.with.to_string()));
    }
    facts.dtypes.push_back(*dtype);
    if (facts.dtypes.size() > plan_inputs_with_shapes) {  // of shape inputs the values count, which only constants have
      const auto constant = value == nullptr ? input.constant : value->constant();
      const auto values = constant ? constant->ints() : std::nullopt;
      if (values) facts.shapes.emplace_back(values->begin(), values->end());
      facts.are_shapes_known = facts.are_shapes_known && values.has_value();
    } else if (value != nullptr && value->shape) {
      facts.shapes.push_back(*value->shape);
    } else if (value == nullptr && input.constant) {
      facts.shapes.emplace_back(input.constant->dims.begin(), input.constant->dims.end());
    } else {
      facts.are_shapes_known = false;
    }
  }
  return facts;
}

bool are_types_known(const Plan& plan, const onnx::Graph& graph) {
  return std::all_of(plan.inputs.begin(), plan.inputs.end(), [&](const PlannedInput& input) {
    const onnx::Value* value = input.is_new || input.name.empty() ? nullptr : graph.find(input.name);
    return value == nullptr || value->type;
  });
}

/// Returns the allowed types of the inputs: "f32, i32; or f16, i32".
std::string input_types_text(const OperatorType& type, std::size_t count) {
  std::vector<std::string> all;
  for (const TypeRow& row : type.type_rows) {
    std::vector<std::string_view> dtypes;
    for (std::size_t i = 0; i < count; ++i) dtypes.push_back(to_string(type.format_of(row, count, i).dtype));
    const std::string text = fmt::format("{}", fmt::join(dtypes, ", "));
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
  }
  return all.size() == 1 ? all.front() + " alone" : fmt::format("{}", fmt::join(all, "; or "));
}

/// Returns the types of the operator's outputs. Throws Error if the operator does not accept inputs of these types.
std::vector<DType> checked_output_dtypes(const Plan& plan, std::span<const DType> inputs) {
  auto results = plan.op->type().output_dtypes(inputs);
  if (results) return std::move(*results);
  std::vector<std::string_view> found;
  for (const DType dtype : inputs) found.push_back(to_string(dtype));
  throw Error(fmt::format("{} supports {}; here its inputs are {}", plan.with.to_string(),
                          input_types_text(plan.op->type(), found.size()), fmt::join(found, ", ")));
}

/// Throws Error if the operator does not accept the tensors that a pattern found, or returns another type or rank.
void check_fits(const Plan& plan, const Region& region, const InputFacts& facts) {
  const std::vector<DType> results = checked_output_dtypes(plan, facts.dtypes);
  for (std::size_t i = 0; i < region.outputs.size(); ++i) {
    const onnx::Value& output = *region.outputs[i];
    const auto dtype = output.type ? to_dtype(*output.type) : std::nullopt;
    if (dtype && *dtype == results[i]) continue;
    throw Error(fmt::format("'{}' is {}, but {} computes {}", output.name,
                            output.type ? to_string(*output.type) : "of an unknown type", plan.with.to_string(),
                            to_string(results[i])));
  }
  if (!facts.are_shapes_known) return;
  std::vector<Shape> shapes;
  if (const Status status = plan.op->infer_shapes(facts.shapes, shapes); !status.ok()) throw Error(status.message());
  for (std::size_t i = 0; i < region.outputs.size(); ++i) {
    const onnx::Value& output = *region.outputs[i];
    if (!output.rank() || *output.rank() == std::ssize(shapes[i])) continue;
    throw Error(fmt::format("'{}' has rank {}, but {} computes rank {}", output.name, *output.rank(),
                            plan.with.to_string(), shapes[i].size()));
  }
}

class RuleRun {
 public:
  RuleRun(Rewriter& rewriter, const Rule& rule) : rewriter_(rewriter), rule_(rule), outcome_(begin_outcome(rule)) {}

  RuleOutcome run() {
    switch (rule_.kind) {
      case Kind::match: match_pattern(); break;
      case Kind::constant: set_constants(); break;
      default: edit_regions(); break;
    }
    return std::move(outcome_);
  }

  /// Applies the rule as a fusion of a library: if the operator cannot replace a match, that is no error, and the
  /// report says why.
  void fuse() {
    const std::vector<onnx::Graph*> graphs = rewriter_.graphs();
    bool has_matched = false;
    for (onnx::Graph* graph : graphs) {
      const onnx::MatchResult result = find_matches(*rule_.pattern, *graph);
      for (const onnx::NearMiss& near : result.near_misses) rewriter_.near_miss(rule_.pattern->name(), near);
      for (const onnx::Match& match : result.matches) fuse(match, *graph);
      has_matched = has_matched || !result.matches.empty();
    }
    if (has_matched) return;
    if (const auto nearest = nearest_match(*rule_.pattern, graphs)) {
      rewriter_.near_miss(rule_.pattern->name(), *nearest);
    }
  }

 private:
  void fuse(const onnx::Match& match, onnx::Graph& graph) {
    const Region region = region_of(match, graph);
    if (region.outputs.empty()) return;
    std::optional<Plan> plan;
    try {
      plan = planned(region, &match);
      const InputFacts facts = facts_of_inputs(*plan, graph);
      check_fits(*plan, region, facts);
      const int rank = facts.shapes.empty() ? -1 : static_cast<int>(facts.shapes.front().size());
      const FunctionInputs inputs{.dtype = facts.dtypes.at(0), .count = facts.dtypes.size(), .rank = rank};
      const onnx::Value& y = *region.outputs.front();
      const onnx::Value* x = graph.find(plan->inputs.front().name);
      if (!rewriter_.is_wanted(*plan->op, inputs, x == nullptr ? y : *x, y)) return;
    } catch (const Error& error) {
      rewriter_.near_miss(rule_.pattern->name(), match, error.what());
      return;
    }
    Proposal proposal = proposal_of(region, *plan);
    proposal.reason = rule_.reason.empty() ? std::string(plan->with.graft->doc) : rule_.reason;
    proposal.place = rule_.place.to_string();
    rewriter_.apply(proposal);
  }

  [[noreturn]] void fail(const std::string& message) const { fail_at(rule_.place, message); }
  [[noreturn]] static void fail_at(const Place& place, const std::string& message) {
    throw Error(fmt::format("{}: {}", place.to_string(), message));
  }

  void edit_regions() {
    Selection selection = select(rule_.select, rewriter_.graphs());
    outcome_.matched = selection.regions.size();
    outcome_.notes = std::move(selection.nearest);
    for (const Region& region : selection.regions) {
      switch (rule_.kind) {
        case Kind::remove: remove(region); break;
        case Kind::set: set_attributes(region); break;
        default: replace(region, nullptr); break;
      }
    }
  }

  void match_pattern() {
    const std::vector<onnx::Graph*> graphs = rewriter_.graphs();
    for (onnx::Graph* graph : graphs) {
      for (const onnx::Match& match : find_matches(*rule_.pattern, *graph).matches) {
        ++outcome_.matched;
        replace(region_of(match, *graph), &match);
      }
    }
    if (outcome_.matched != 0) return;
    if (const auto nearest = nearest_match(*rule_.pattern, graphs)) {
      outcome_.notes.push_back(fmt::format("nearest: at {}, {} of {} nodes matched: {}", onnx::describe(*nearest->node),
                                           nearest->matched_nodes, nearest->pattern_nodes, nearest->reason));
    } else {
      outcome_.notes.push_back(fmt::format("the model has no {}, which the pattern ends with",
                                           fmt::join(rule_.pattern->root_types(), " or ")));
    }
  }

  // ---- Replacing

  void replace(const Region& region, const onnx::Match* match) {
    if (region.outputs.empty()) {
      outcome_.notes.push_back(fmt::format("{}: no node reads its result", region.name));
      return;
    }
    Plan plan = planned(region, match);
    const bool is_foreign = !plan.with.domain.empty() && plan.with.graft == nullptr && plan.with.domain != "ai.onnx.ml";
    if (is_foreign && rule_.prove && !has_function(plan.with)) {
      fail(
          fmt::format("{} cannot run on the CPU, and the model has no function of that name, so this rule cannot be "
                      "proven; to use it without a proof, write prove: false and a reason",
                      plan.with.to_string()));
    }
    if (plan.with.graft != nullptr || (is_foreign && !has_function(plan.with))) {
      if (const std::string refusal = rewriter_.refusal_of_plugin_in(*region.graph); !refusal.empty()) {
        outcome_.notes.push_back(fmt::format("{}: the rule was not applied: {}", region.name, refusal));
        return;
      }
    }
    if (plan.op != nullptr && !plan.int8 && are_types_known(plan, *region.graph)) {
      try {
        static_cast<void>(checked_output_dtypes(plan, facts_of_inputs(plan, *region.graph).dtypes));
      } catch (const Error& error) {
        outcome_.notes.push_back(fmt::format("{}: the rule was not applied: {}", region.name, error.what()));
        return;
      }
    }
    if (plan.with.graft != nullptr || is_foreign) plan.note = fmt::format("requested by {}", rule_.place.to_string());
    apply(region, proposal_of(region, plan));
  }

  Plan planned(const Region& region, const onnx::Match* match) {
    for (const onnx::Node* node : region.nodes) {
      if (!node->subgraphs().empty())
        fail(fmt::format("{}: {} has subgraphs; rules cannot replace such nodes", region.name, onnx::describe(*node)));
    }
    Plan plan{rule_.with, nullptr, {}, {}, {}, rule_.int8, ""};
    plan.inputs = planned_inputs(region, match);
    plan.outputs = planned_outputs(region);
    plan_attributes(region, match, plan);
    check_counts(region, plan);
    return plan;
  }

  Proposal proposal_of(const Region& region, const Plan& plan) const {
    Proposal proposal = proposal_of(region, plan.op == nullptr ? plan.with.to_string() : passes::to_text(*plan.op));
    for (const PlannedInput& input : plan.inputs) {
      onnx::Value* value = input.name.empty() || input.constant ? nullptr : region.graph->find(input.name);
      if (value != nullptr) proposal.inputs.push_back(value);
    }
    proposal.edit = [plan](onnx::Graph& graph) { make(plan, graph); };
    return proposal;
  }

  bool has_function(const RuleOperator& with) {
    const auto& functions = rewriter_.model().functions;
    return std::any_of(functions.begin(), functions.end(), [&](const auto& entry) {
      return entry.first.domain == with.domain && entry.first.name == with.op_type;
    });
  }

  PlannedInput planned(const onnx::Value* value) const {
    if (value == nullptr) return {};
    return {value->name, value->constant()};
  }

  std::vector<PlannedInput> planned_inputs(const Region& region, const onnx::Match* match) {
    std::vector<PlannedInput> inputs;
    if (!rule_.inputs) {
      if (match != nullptr) {
        if (!match->values.contains("x")) {
          fail("`inputs` is missing: list the names of the pattern that the operator reads, in its order");
        }
        return {planned(&match->value("x"))};
      }
      for (const onnx::Value* input : region.inputs) {
        const bool left_out = region.nodes.size() > 1 && is_number_of_shape(*input);
        if (!left_out) inputs.push_back(planned(input));
      }
      return inputs;
    }
    std::unordered_set<const onnx::Value*> listed;
    for (const RuleValue& wanted : *rule_.inputs) {
      const onnx::Value* value = find_input(region, match, wanted, inputs);
      if (value == nullptr) continue;
      listed.insert(value);
      inputs.push_back(planned(value));
    }
    if (match == nullptr && region.nodes.size() > 1) check_closed(region, listed);
    return inputs;
  }

  /// Returns the value that an entry of the rule's `inputs` names. Returns null if the entry leaves the input out or
  /// names a constant of the pattern; the entry is then added to `inputs`.
  const onnx::Value* find_input(const Region& region, const onnx::Match* match, const RuleValue& wanted,
                                std::vector<PlannedInput>& inputs) const {
    if (const auto* index = std::get_if<std::int64_t>(&wanted.data)) {
      if (*index < 0 || static_cast<std::size_t>(*index) >= region.inputs.size()) {
        fail_at(wanted.place, fmt::format("{} has no input {}; it has {}", region.name, *index, region.inputs.size()));
      }
      const onnx::Value* value = region.inputs[static_cast<std::size_t>(*index)];
      if (value == nullptr) inputs.emplace_back();
      return value;
    }
    const auto* name = std::get_if<std::string>(&wanted.data);
    if (name == nullptr) fail_at(wanted.place, "an input must be a number or the name of a tensor");
    if (*name == "_") {
      inputs.emplace_back();
      return nullptr;
    }
    if (match != nullptr) {
      const std::string plain = name->starts_with('@') ? name->substr(1) : *name;
      if (const auto found = match->values.find(plain); found != match->values.end()) return found->second;
      if (const auto found = match->constants.find(plain); found != match->constants.end()) {
        inputs.push_back({plain, found->second, true});
        return nullptr;
      }
      std::vector<std::string> known;
      for (const auto& [value_name, value] : match->values) known.push_back(value_name);
      fail_at(wanted.place, fmt::format("the pattern has no name {}; its names are {}", *name, fmt::join(known, ", ")));
    }
    const onnx::Value* value = region.graph->find(*name);
    if (value == nullptr) {
      fail_at(wanted.place,
              fmt::format("the model has no tensor '{}'{}", *name, did_you_mean(*name, tensor_names(*region.graph))));
    }
    return value;
  }

  void check_closed(const Region& region, const std::unordered_set<const onnx::Value*>& listed) const {
    std::vector<std::string> missing;
    for (const onnx::Value* input : region.inputs) {
      if (!listed.contains(input) && !is_number_of_shape(*input)) missing.push_back("'" + input->name + "'");
    }
    if (missing.empty()) return;
    fail(fmt::format("{} also needs {}, which `inputs` does not list", region.name, fmt::join(missing, ", ")));
  }

  std::vector<std::string> planned_outputs(const Region& region) const {
    std::vector<std::string> names;
    for (const onnx::Value* output : region.outputs) names.push_back(output->name);
    if (rule_.outputs.empty()) return names;
    for (const std::string& name : names) {
      if (std::find(rule_.outputs.begin(), rule_.outputs.end(), name) == rule_.outputs.end()) {
        fail(fmt::format("{}: '{}' is also used outside ({}), but `outputs` does not list it", region.name, name,
                         user_of(region, name)));
      }
    }
    for (const std::string& name : rule_.outputs) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        fail(fmt::format("{} does not have the output '{}'; its outputs are {}", region.name, name,
                         fmt::join(names, ", ")));
      }
    }
    return rule_.outputs;
  }

  static std::string user_of(const Region& region, const std::string& name) {
    const onnx::Value* value = region.graph->find(name);
    for (const onnx::Use& use : value->uses) {
      if (std::find(region.nodes.begin(), region.nodes.end(), use.node) == region.nodes.end())
        return onnx::describe(*use.node);
    }
    return "an output of the graph";
  }

  void check_counts(const Region& region, const Plan& plan) const {
    const auto counts = plan.with.port_counts();
    if (!counts) return;
    const auto [fewest, most, outputs] = *counts;
    if (plan.inputs.size() < fewest || plan.inputs.size() > most) {
      std::vector<std::string> names;
      for (const PlannedInput& input : plan.inputs) names.push_back(input.name.empty() ? "_" : input.name);
      fail(fmt::format("{} reads {} inputs ({}); {} takes {}\nSelect and order the inputs with `inputs`", region.name,
                       plan.inputs.size(), fmt::join(names, ", "), plan.with.to_string(),
                       fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most)));
    }
    if (plan.outputs.size() > outputs) {
      std::string users;
      for (const std::string& name : plan.outputs) {
        users += fmt::format("{}'{}' ({})", users.empty() ? "" : ", ", name, user_of(region, name));
      }
      fail(fmt::format("{}: {} of its tensors are used outside, but {} has {}: {}", region.name, plan.outputs.size(),
                       plan.with.to_string(), outputs, users));
    }
  }

  // ---- Attributes

  std::optional<RuleValue::Data> captured(const Region& region, const onnx::Match* match,
                                          const std::string& name) const {
    if (match != nullptr) {
      const auto found = match->constants.find(name);
      return found == match->constants.end() ? std::nullopt : constant_data(found->second);
    }
    if (region.nodes.size() != 1) return std::nullopt;
    return attribute_data(*region.nodes.front(), name);
  }

  std::vector<std::pair<std::string, RuleValue>> evaluated_attributes(const Region& region,
                                                                      const onnx::Match* match) const {
    std::vector<std::pair<std::string, RuleValue>> result;
    for (const auto& [name, value] : rule_.attributes) {
      result.emplace_back(name,
                          evaluate(value, [&](const std::string& what) { return captured(region, match, what); }));
    }
    return result;
  }

  static bool is_given(const std::vector<std::pair<std::string, RuleValue>>& given, std::string_view name) {
    return std::any_of(given.begin(), given.end(), [&](const auto& entry) { return entry.first == name; });
  }

  AttributeValue typed(const RuleValue& value, const std::string& name, std::optional<AttributeType> type) const {
    const auto result = type ? to_attribute(value, *type) : std::optional(to_attribute(value));
    if (!result) {
      fail_at(value.place,
              fmt::format("attribute `{}` would be {}; allowed is {}", name, value.to_string(), to_string(*type)));
    }
    return *result;
  }

  void plan_attributes(const Region& region, const onnx::Match* match, Plan& plan) {
    std::vector<std::pair<std::string, RuleValue>> given = evaluated_attributes(region, match);
    if (plan.with.graft == nullptr) {
      const onnx::OperatorSchema* form =
          plan.with.domain.empty() ? onnx::find_schema(plan.with.op_type, onnx::newest_opset) : nullptr;
      for (const auto& [name, value] : given) {
        plan.attributes[name] = typed(value, name, form == nullptr ? std::nullopt : form->attribute_type(name));
      }
      if (plan.with.is_plugin) {
        plan.attributes["plugin_version"] = plan.with.plugin_version;
        plan.attributes["plugin_namespace"] = plan.with.plugin_namespace;
      }
      return;
    }
    if (match == nullptr && region.nodes.size() == 1)
      add_native_attributes(*region.nodes.front(), *plan.with.graft, given);
    if (plan.int8) prepare_int8(region, plan, given);
    std::vector<AttributeValue> values;
    values.reserve(given.size());
    std::vector<NamedAttribute> named;
    for (const auto& [name, value] : given) {
      named.push_back({name, typed(value, name, plan.with.graft->find_attribute(name)->type)});
    }
    std::unique_ptr<Operator> op;
    if (const Status status = make_operator(*plan.with.graft, nullptr, named, op); !status.ok()) {
      fail(fmt::format("{}: {}: {}", region.name, plan.with.to_string(), status.message()));
    }
    plan.op = std::move(op);
  }

  /// Copies the attributes of a single node to the operator that computes the same, unless the rule sets them.
  void add_native_attributes(const onnx::Node& node, const OperatorType& type,
                             std::vector<std::pair<std::string, RuleValue>>& given) const {
    const auto found =
        std::find_if(type.native_equivalents.begin(), type.native_equivalents.end(),
                     [&](const NativeEquivalent& native) { return node.domain.empty() && native.op == node.op_type; });
    if (found == type.native_equivalents.end()) return;
    for (const auto& [standard, own] : found->attributes) {
      if (is_given(given, own)) continue;
      auto data = attribute_data(node, standard);
      if (!data && node.is("Conv")) data = convolution_default(node, standard, own);
      if (data) given.emplace_back(std::string(own), RuleValue{rule_.place, std::move(*data)});
    }
  }

  /// Returns the value that Conv derives from its weight or its input if an attribute is missing.
  std::optional<RuleValue::Data> convolution_default(const onnx::Node& node, std::string_view attribute,
                                                     std::string_view own) const {
    if (attribute == "pads") {
      const std::string padding = node.string_or("auto_pad", "NOTSET");
      if (padding == "NOTSET" || padding == "VALID") return std::nullopt;
      fail(fmt::format("{}: its padding is `auto_pad` {}, which depends on the size of its input; set `{}`",
                       onnx::describe(node), padding, own));
    }
    const onnx::Value* weight = node.input(1);
    if (attribute != "kernel_shape" || weight == nullptr || !weight->shape) return std::nullopt;
    std::vector<std::int64_t> kernel;
    for (std::size_t axis = 2; axis < weight->shape->size(); ++axis) {
      if (!(*weight->shape)[axis].is_constant()) return std::nullopt;
      kernel.push_back((*weight->shape)[axis].value());
    }
    return kernel;
  }

  /// Turns the operator's weight into int8, with a scale for each channel. Everything else stays in f32.
  void prepare_int8(const Region& region, Plan& plan, std::vector<std::pair<std::string, RuleValue>>& given) const {
    const onnx::Value* x = plan.inputs.empty() ? nullptr : region.graph->find(plan.inputs[0].name);
    if (x == nullptr || x->type != onnx::ElementType::f32) {
      fail(fmt::format("{}: int8 needs an input of f32; its input is {}", region.name,
                       x == nullptr || !x->type ? "unknown" : to_string(*x->type)));
    }
    given.emplace_back(plan.with.input_scale(), RuleValue{rule_.place, plan.int8->input_scale});
    given.emplace_back(plan.with.output_scale(), RuleValue{rule_.place, plan.int8->output_scale});
    const std::optional<Int8Weight>& stored = plan.with.graft->int8_weight;
    if (!stored || plan.inputs.size() <= stored->input) return;
    PlannedInput& weight = plan.inputs[stored->input];
    const auto numbers = weight.constant ? weight.constant->numbers() : std::nullopt;
    if (!numbers || weight.constant->dims.empty() || weight.constant->dims[0] == 0) {
      fail(fmt::format("{}: its weights '{}' are not a constant, so they cannot be quantized to int8", region.name,
                       weight.name));
    }
    const auto channels = static_cast<std::size_t>(weight.constant->dims[0]);
    const std::size_t size = numbers->size() / channels;
    std::vector<double> scales;
    std::vector<double> steps;
    for (std::size_t channel = 0; channel < channels; ++channel) {
      double largest = 0;
      for (std::size_t i = 0; i < size; ++i) largest = std::max(largest, std::abs((*numbers)[channel * size + i]));
      // The scale is rounded to f32 first, so that the steps are those of the scale that is stored.
      const double scale = largest > 0 ? static_cast<double>(static_cast<float>(largest / 127)) : 1.0;
      scales.push_back(scale);
      for (std::size_t i = 0; i < size; ++i) {
        steps.push_back(std::clamp(std::nearbyint((*numbers)[channel * size + i] / scale), -127.0, 127.0));
      }
    }
    weight.constant = onnx::TensorData::from_numbers(onnx::ElementType::i8, weight.constant->dims, steps);
    weight.name += "_int8";
    weight.is_new = true;
    given.emplace_back(std::string(stored->scales), RuleValue{rule_.place, scales});
  }

  // ---- Removing and setting

  void remove(const Region& region) {
    if (region.outputs.empty()) {  // an assertion, for example: it is removed with all other nodes that no output needs
      rewriter_.record(region.is_group ? Rewriter::Subject{.others = region.name}
                                       : Rewriter::Subject{.nodes = {ref_of(*region.nodes.front())}},
                       "nothing", reason(), "by definition: no output of the graph needs it");
      ++outcome_.applied;
      return;
    }
    if (region.outputs.size() > 1) {
      std::vector<std::string> names;
      for (const onnx::Value* output : region.outputs) names.push_back("'" + output->name + "'");
      fail(fmt::format("{} has the outputs {}; a bypass must have one output", region.name, fmt::join(names, " and ")));
    }
    if (rule_.input >= region.inputs.size() || region.inputs[rule_.input] == nullptr) {
      fail(fmt::format("{} has no input {}; it has {}", region.name, rule_.input, region.inputs.size()));
    }
    onnx::Value* from = region.inputs[rule_.input];
    Proposal proposal = proposal_of(region, fmt::format("its input '{}'", from->name));
    if (!from->constant()) proposal.inputs.push_back(from);
    proposal.edit = [from = planned(from), to = region.outputs[0]->name](onnx::Graph& graph) {
      onnx::Value* x = graph.find(from.name);
      if (x == nullptr) x = graph.add_constant(from.name, from.constant.value());
      onnx::Value* y = graph.find(to);
      onnx::Node* copy = graph.add_node("Identity", {x}, {to}, y->producer);
      graph.move_output(*y->producer, y->output_index, *copy, 0);
      graph.topological_sort();
    };
    apply(region, proposal);
  }

  void set_attributes(const Region& region) {
    if (region.nodes.size() != 1 || region.outputs.empty()) {
      fail(
          fmt::format("{}: attributes can be set only on single nodes whose result is used; select nodes by op or name",
                      region.name));
    }
    const onnx::Node& node = *region.nodes.front();
    const onnx::OperatorSchema* form =
        node.domain.empty() ? onnx::find_schema(node.op_type, onnx::newest_opset) : nullptr;
    std::map<std::string, AttributeValue> values;
    std::string text = node.op_type;
    for (const auto& [name, value] : evaluated_attributes(region, nullptr)) {
      if (form != nullptr && !form->has_attribute(name)) {
        fail_at(value.place, no_attribute(node.op_type, name, form->attribute_names()));
      }
      std::optional<AttributeType> type = form == nullptr ? std::nullopt : form->attribute_type(name);
      if (!type && node.attribute(name) != nullptr) {
        if (const auto old = node.attribute(name)->value()) type = graft::type_of(*old);
      }
      values[name] = typed(value, name, type);
      text += fmt::format(" {}={}", name, graft::to_string(values[name]));
    }
    Proposal proposal = proposal_of(region, text);
    for (onnx::Value* input : region.inputs) {
      if (input != nullptr) proposal.inputs.push_back(input);
    }
    proposal.edit = [values, output = region.outputs[0]->name](onnx::Graph& graph) {
      onnx::Node* target = graph.find(output)->producer;
      for (const auto& [name, value] : values) target->attributes[name] = onnx::NodeAttribute(value);
    };
    apply(region, proposal);
  }

  void set_constants() {
    onnx::Graph& graph = rewriter_.model().graph();
    for (const Rule::Entry& entry : rule_.entries) {
      ++outcome_.matched;
      onnx::Value* value = graph.find_local(entry.name.text());
      const auto old = value == nullptr ? std::nullopt : value->constant();
      if (!old) {
        outcome_.notes.push_back(fmt::format("there is no constant '{}'{}", entry.name.text(),
                                             did_you_mean(entry.name.text(), tensor_names(graph))));
        continue;
      }
      onnx::TensorData fresh = new_constant(entry, *old);
      std::vector<onnx::Node*> users;
      for (const onnx::Use& use : value->uses) {
        if (use.node->graph == &graph && std::find(users.begin(), users.end(), use.node) == users.end()) {
          users.push_back(use.node);
        }
      }
      if (users.empty()) {
        outcome_.notes.push_back(fmt::format("no node reads '{}'", value->name));
        continue;
      }
      const Region region = make_region(fmt::format("the constant '{}'", value->name), users);
      Proposal proposal = proposal_of(region, to_string(fresh));
      for (onnx::Value* input : region.inputs) {
        if (input != nullptr && !input->constant()) proposal.inputs.push_back(input);
      }
      // The uses are redirected to a new constant: the old one may be the output of a node.
      proposal.edit = [name = value->name, fresh = std::move(fresh)](onnx::Graph& target) {
        onnx::Value* before = target.find_local(name);
        onnx::Value* after = target.add_constant(name, fresh);
        for (const onnx::Use& use : std::vector<onnx::Use>(before->uses))
          use.node->graph->set_input(*use.node, use.index, after);
      };
      apply(region, proposal);
    }
  }

  onnx::TensorData new_constant(const Rule::Entry& entry, const onnx::TensorData& old) const {
    std::vector<double> numbers;
    if (const auto* integer = std::get_if<std::int64_t>(&entry.value.data)) {
      numbers.assign(static_cast<std::size_t>(old.element_count()), static_cast<double>(*integer));
    } else if (const auto* number = std::get_if<double>(&entry.value.data)) {
      numbers.assign(static_cast<std::size_t>(old.element_count()), *number);
    } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&entry.value.data)) {
      numbers.assign(integers->begin(), integers->end());
    } else if (const auto* list = std::get_if<std::vector<double>>(&entry.value.data)) {
      numbers = *list;
    } else {
      fail_at(entry.value.place, "the value of a constant must be numbers");
    }
    if (static_cast<std::int64_t>(numbers.size()) != old.element_count()) {
      fail_at(entry.value.place,
              fmt::format("found {} numbers; '{}' has {}", numbers.size(), entry.name.text(), old.element_count()));
    }
    return onnx::TensorData::from_numbers(old.type, old.dims, numbers);
  }

  // ---- The change

  [[nodiscard]] std::string reason() const {
    return fmt::format("requested by {}{}{}", rule_.place.to_string(), rule_.reason.empty() ? "" : ": ", rule_.reason);
  }

  Proposal proposal_of(const Region& region, std::string replacement) const {
    return {.nodes = region.nodes,
            .inputs = {},
            .outputs = region.outputs,
            .replacement = std::move(replacement),
            .reason = reason(),
            .by_definition = rule_.prove ? "" : "not proven, because of prove: false in the rule: " + rule_.reason,
            .edit = {},
            .changes_result = rule_.changes_result};
  }

  void apply(const Region& region, const Proposal& proposal) {
    if (rewriter_.apply(proposal)) {
      ++outcome_.applied;
    } else {
      outcome_.notes.push_back(
          fmt::format("{}: the rule was not applied: {}", region.name, rewriter_.last_rejected().proof));
    }
  }

  Rewriter& rewriter_;
  const Rule& rule_;
  RuleOutcome outcome_;
};

}  // namespace

void apply_replacements(Rewriter& rewriter, const std::vector<Rule>& rules, Rule::Stage stage) {
  for (const Rule& rule : rules) {
    if (rule.stage != stage) continue;
    rewriter.record_rule(RuleRun(rewriter, rule).run());
    rewriter.end();
  }
}

void fuse_library_operators(Rewriter& rewriter) {
  for (const OperatorLibrary& library : operator_libraries()) {
    for (const Rule& rule : library_fusions(library)) RuleRun(rewriter, rule).fuse();
  }
}

}  // namespace graft::rules
