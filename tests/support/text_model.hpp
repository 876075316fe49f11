// Builds small models for tests from text, and queries them.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "onnx/functions.hpp"
#include "onnx/model.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/shape_inference.hpp"

namespace graft::test {

struct TextInput {
  TextInput(std::string name, onnx::ElementType type = onnx::ElementType::f32)  // NOLINT(google-explicit-constructor)
      : name(std::move(name)), type(type) {}
  TextInput(std::string name, onnx::ElementType type, Shape shape)
      : name(std::move(name)), type(type), shape(std::move(shape)) {}

  /// Declares a constant in place of an input.
  TextInput(std::string name, onnx::TensorData constant)
      : name(std::move(name)), type(constant.type), constant(std::move(constant)) {}

  std::string name;
  onnx::ElementType type;
  std::optional<Shape> shape;  ///< The shape; nothing where not even the rank is known.
  std::optional<onnx::TensorData> constant;
};

/// Returns a constant with distinct elements of both signs.
inline TextInput weight(const std::string& name, const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const std::int64_t size : dims) count *= size;
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(std::sin(static_cast<double>(i + 1)));
  return {name, onnx::TensorData::from_numbers(onnx::ElementType::f32, dims, numbers)};
}

/// Returns a model of the nodes, in the syntax of parse_nodes. Only the inputs have types and shapes.
inline onnx::Model text_model(const std::vector<TextInput>& inputs, const std::string& nodes,
                              const std::vector<std::string>& outputs, std::int64_t opset = 17) {
  onnx::Model model;
  model.source = "test.onnx";
  model.graph().name = "test";
  model.graph().opset_imports[""] = opset;
  model.graph().opset_imports[std::string(onnx_domain)] = 1;
  for (const TextInput& input : inputs) {
    if (input.constant) {
      model.graph().add_constant(input.name, *input.constant);
      continue;
    }
    onnx::Value* value = model.graph().add_input(input.name);
    value->type = input.type;
    value->shape = input.shape;
  }
  parse_nodes(model.graph(), nodes, outputs, nullptr);
  model.graph().check();
  return model;
}

/// Returns a model of the nodes with inferred types and shapes of all tensors.
inline onnx::Model inferred_text_model(const std::vector<TextInput>& inputs, const std::string& nodes,
                                       const std::vector<std::string>& outputs, std::int64_t opset = 17) {
  onnx::Model model = text_model(inputs, nodes, outputs, opset);
  infer_shapes(model);
  return model;
}

inline onnx::Node& producer(onnx::Model& model, std::string_view value) { return *model.graph().find(value)->producer; }

/// Returns the operators of the nodes in order, without subgraphs.
inline std::vector<std::string> op_types(const onnx::Graph& graph) {
  std::vector<std::string> result;
  for (const onnx::Node* node : graph.nodes()) result.push_back(node->op_type);
  return result;
}

/// Returns the number of nodes of an operator, including subgraphs.
inline std::size_t count_of(const onnx::Model& model, std::string_view op_type) {
  std::size_t count = 0;
  model.graph().for_each_node([&](const onnx::Node& node) { count += node.op_type == op_type ? 1 : 0; });
  return count;
}

/// Returns the message that an operation throws; empty where it throws nothing.
template <class F>
std::string error_of(F&& operation) {
  try {
    operation();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace graft::test
