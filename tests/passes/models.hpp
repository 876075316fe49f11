// Small models, written as text, and questions that several tests ask of a model.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "graft/operator.hpp"
#include "graph/functions.hpp"
#include "graph/model.hpp"
#include "graph/operator_node.hpp"
#include "graph/shape_inference.hpp"
#include "verify/verify_models.hpp"

namespace graft {

struct InputSpec {
  std::string name;
  ElementType type = ElementType::f32;
  Shape shape;
};

/// Nodes in the manner of parse_nodes.
inline Model make_model(const std::vector<InputSpec>& inputs, const std::string& nodes,
                        const std::vector<std::string>& outputs, std::int64_t opset = 17) {
  Model model;
  model.graph().name = "test";
  model.graph().opset_imports[""] = opset;
  for (const InputSpec& spec : inputs) {
    Value* value = model.graph().add_input(spec.name);
    value->type = spec.type;
    value->shape = spec.shape;
  }
  parse_nodes(model.graph(), nodes, outputs, [](std::string_view) { return std::optional<AttributeType>{}; });
  infer_shapes(model);
  return model;
}

inline Shape image_shape() { return {Dim::symbol("N"), 4, 3, 5}; }

/// op_types in the order of the nodes, sub-graphs not included.
inline std::vector<std::string> op_types(const Graph& graph) {
  std::vector<std::string> result;
  for (const Node* node : graph.nodes()) result.push_back(node->op_type);
  return result;
}

inline std::size_t count_of(const Model& model, std::string_view op_type) {
  std::size_t count = 0;
  model.graph().for_each_node([&](const Node& node) { count += node.op_type == op_type ? 1 : 0; });
  return count;
}

/// The operators of Graft in the model, also in sub-graphs.
inline std::vector<std::unique_ptr<Operator>> operators_in(const Model& model) {
  std::vector<std::unique_ptr<Operator>> result;
  model.graph().for_each_node([&](const Node& node) {
    if (node.domain == onnx_domain) result.push_back(make_operator(node));
  });
  return result;
}

inline std::string first_difference(const VerifyReport& report) {
  for (const OutputReport& output : report.outputs) {
    if (!output.equal()) return output.reference_name + ": " + output.worst.to_string();
  }
  return report.problems.empty() ? "" : report.problems.front();
}

}  // namespace graft
