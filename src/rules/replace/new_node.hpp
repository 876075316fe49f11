// The node that a rule inserts: its operator, inputs, outputs and attributes. It is planned from the rule and a region
// of the network, checked, and then inserted into the network and into the copy of the region that the proof runs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "rules/matching.hpp"
#include "rules/rule.hpp"
#include "rules/rule_run.hpp"

namespace graft::rules {

/// An input of the new node. A constant is stored here too, since a copy of the region need not hold it.
struct NodeInput {
  std::string name;  ///< Empty for an optional input that is left out.
  std::optional<onnx::TensorData> constant;
  bool is_new = false;  ///< Whether the constant is not yet a tensor of the model.
};

/// The new node, independent of the graph into which it is inserted.
struct NewNode {
  RuleOperator with;
  std::shared_ptr<const Operator> op;  ///< Null for operators that are not Graft's.
  std::map<std::string, AttributeValue> attributes;
  std::vector<NodeInput> inputs;
  std::vector<std::string> outputs;
  std::optional<Rule::Int8> int8;
  std::string note;
};

/// Returns a tensor of the model, or nothing, as an input.
[[nodiscard]] NodeInput to_input(const onnx::Value* value);

// plan_node.cpp: throws Error with the place of the rule if its inputs, outputs or attributes do not fit the region.
[[nodiscard]] NewNode plan_node(const Rule& rule, const Region& region);
/// Returns the proposal that replaces the region by the node.
[[nodiscard]] Proposal propose_node(const Rule& rule, const Region& region, const NewNode& node);

// node_attributes.cpp: sets the node's attributes, and quantizes its weight if the rule has `int8`. Throws Error with
// the place of the rule.
void plan_attributes(const Rule& rule, const Region& region, NewNode& node);

// node_types.cpp

/// The types and shapes of the inputs of a Graft operator, as far as the model has them.
struct InputFacts {
  std::vector<DType> dtypes;
  std::vector<Shape> shapes;
  bool are_shapes_known = true;
};

/// Throws Error naming a tensor whose type is unknown, or in which no kernel computes.
[[nodiscard]] InputFacts find_input_facts(const NewNode& node, const onnx::Graph& graph);
[[nodiscard]] bool are_types_known(const NewNode& node, const onnx::Graph& graph);
/// Returns the types of the operator's outputs. Throws Error if the operator does not accept inputs of these types.
std::vector<DType> checked_output_dtypes(const NewNode& node, std::span<const DType> inputs);
/// Throws Error if the operator does not accept the tensors that a pattern found, or returns another type or rank.
void check_fits(const NewNode& node, const Region& region, const InputFacts& facts);

// insert_node.cpp: inserts the node into the network or into a copy of the region.
void insert(const NewNode& node, onnx::Graph& graph);

}  // namespace graft::rules
