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

/// An input of the new node: the name of a tensor of the model, or a constant. A constant is stored here too, because
/// the small model with which the replacement is proven may not contain it.
struct NodeInput {
  std::string name;  ///< Empty for an optional input that is left out.
  std::optional<onnx::TensorData> constant;
  bool is_new = false;  ///< Whether the constant is not yet a tensor of the model.
};

/// A description of the node that a rule inserts, which does not point into a graph. It can be inserted into the model
/// and into the small models with which the replacement is proven.
struct NewNode {
  RuleOperator with;
  std::shared_ptr<const Operator> op;  ///< Null for operators that are not Graft's.
  std::map<std::string, AttributeValue> attributes;
  std::vector<NodeInput> inputs;
  std::vector<std::string> outputs;
  std::optional<Rule::Int8> int8;
  std::string note;
};

/// Returns a NodeInput for a tensor of the model, with its value if it is constant. Null gives an input that is left
/// out.
[[nodiscard]] NodeInput to_input(const onnx::Value* value);

// plan_node.cpp: throws Error with the place of the rule if its inputs, outputs or attributes do not fit the region.
[[nodiscard]] NewNode plan_node(const Rule& rule, const Region& region);
/// Returns the proposal to replace the nodes of `region` with the new node.
[[nodiscard]] Proposal propose_node(const Rule& rule, const Region& region, const NewNode& node);

// node_attributes.cpp: sets the node's attributes, and quantizes its weight if the rule has `int8`. Throws Error with
// the place of the rule.
void plan_attributes(const Rule& rule, const Region& region, NewNode& node);

// node_types.cpp

/// The types and shapes of the inputs of a new Graft operator, as far as they are known in the graph.
struct InputFacts {
  std::vector<DType> dtypes;
  std::vector<Shape> shapes;
  bool are_shapes_known = true;
};

/// Returns the types and shapes of the inputs. Throws Error naming the tensor if its type is unknown or not supported
/// by Graft's kernels.
[[nodiscard]] InputFacts find_input_facts(const NewNode& node, const onnx::Graph& graph);
[[nodiscard]] bool are_types_known(const NewNode& node, const onnx::Graph& graph);
/// Returns the types of the new operator's outputs for these input types. Throws Error if the operator does not accept
/// them.
std::vector<DType> checked_output_dtypes(const NewNode& node, std::span<const DType> inputs);
/// Throws Error if the operator does not accept the types or shapes of the inputs, or if its outputs have other types
/// or ranks than the outputs of the nodes in `region`.
void check_fits(const NewNode& node, const Region& region, const InputFacts& facts);

// insert_node.cpp: inserts the node into the network or into a copy of the region.
void insert(const NewNode& node, onnx::Graph& graph);

}  // namespace graft::rules
