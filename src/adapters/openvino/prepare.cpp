// Functions are inlined, because OpenVINO's reader does not know them; operators become numbered nodes, because each
// reader is given its own table of operators and so needs no names registered for the whole process.
#include "adapters/openvino/prepare.hpp"

#include <algorithm>
#include <utility>

#include "graph/functions.hpp"
#include "graph/operator_node.hpp"

namespace graft {
namespace {

void add_extra_outputs(Model& model, const std::vector<std::string>& names) {
  Graph& graph = model.graph();
  for (const std::string& name : names) {
    Value* value = graph.find_local(name);
    if (value == nullptr) {
      throw Error(model.source + ": there is no tensor '" + name + "' in the main graph to return as an extra output");
    }
    const auto& outputs = graph.outputs();
    if (std::find(outputs.begin(), outputs.end(), value) == outputs.end()) graph.add_output(*value);
  }
}

void place_operators(PreparedModel& prepared) {
  prepared.model.graph().for_each_node([&](Node& node) {
    std::shared_ptr<const Operator> op = make_operator(node);
    if (op == nullptr) return;
    const OperatorType& type = op->type();
    const bool ports_fit = node.inputs.size() >= type.required_input_count() &&
                           node.inputs.size() <= type.input_count() && node.outputs.size() <= type.output_count() &&
                           std::find(node.inputs.begin(), node.inputs.end(), nullptr) == node.inputs.end();
    if (!ports_fit) {
      throw Error(prepared.model.source + ": " + describe(node) + " has " + std::to_string(node.inputs.size()) +
                  " inputs and " + std::to_string(node.outputs.size()) + " outputs; " + std::string(type.name) +
                  " takes " + type.input_count_text() + " and " + std::to_string(type.output_count()) +
                  ", none left out");
    }
    PlacedOperator placed{std::move(op), describe(node)};
    node.attributes.clear();
    node.metadata.clear();
    node.op_type = engine_operator;
    node.domain = engine_domain;
    node.overload.clear();
    node.attributes.emplace("index",
                            NodeAttribute(AttributeData(static_cast<std::int64_t>(prepared.operators.size()))));
    prepared.operators.push_back(std::move(placed));
  });
  if (!prepared.operators.empty()) prepared.model.graph().opset_imports[std::string(engine_domain)] = 1;
}

}  // namespace

PreparedModel prepare(const Model& model, const CpuOptions& options) {
  PreparedModel prepared{model.clone(), {}};
  Model& copy = prepared.model;
  add_extra_outputs(copy, options.extra_outputs);
  if (options.kernels == OperatorKernels::functions) {
    inline_functions(copy);
    attach_functions(copy);
    inline_functions(copy);
  } else {
    inline_functions(copy, {.which = [](const FunctionKey& key) { return key.domain != onnx_domain; }});
  }
  place_operators(prepared);
  inline_functions(copy);
  copy.graph().remove_dead();
  return prepared;
}

}  // namespace graft
