#include "inspect/function_bodies.hpp"

#include "inspect/forecast.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_node.hpp"

namespace graft::inspect {

std::set<onnx::FunctionKey> called_functions(const onnx::Model& model) {
  std::set<onnx::FunctionKey> called;
  const auto look_at = [&](const onnx::Graph& graph) {
    graph.for_each_node([&](const onnx::Node& node) {
      const onnx::FunctionDefinition* function = model.find_function(node);
      if (function != nullptr && !find_operator_for(node)) called.insert(function->key);
    });
  };
  look_at(model.graph());
  for (const auto& [key, function] : model.functions) look_at(*function.body);
  return called;
}

void inline_bodies(onnx::Model& model, const std::set<onnx::FunctionKey>& functions) {
  onnx::InlineOptions options;
  options.which = [&](const onnx::FunctionKey& key) { return functions.contains(key); };
  options.note_calls = true;
  onnx::inline_functions(model, options);
  infer_and_note_faults(model, {});
}

}  // namespace graft::inspect
