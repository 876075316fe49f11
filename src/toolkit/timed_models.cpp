// Makes a model of one node, with its function, of every timed case.
#include "toolkit/timed_models.hpp"

#include <string>
#include <vector>

#include "graph/functions.hpp"
#include "graph/onnx_io.hpp"
#include "graph/operator_node.hpp"
#include "graph/shape_inference.hpp"
#include "ops/operator_case.hpp"

namespace graft::toolkit {
namespace {

bool is_plain_f32(const TimedCase& timed) {
  for (const TensorDesc& desc : timed.inputs) {
    if (desc.dtype != DType::f32 || desc.layout != Layout::linear) return false;
  }
  return true;
}

/// False where standard operators cannot express it.
bool make_model(const OperatorType& type, const TimedCase& timed, graft::Model& model) {
  Graph& graph = model.graph();
  graph.opset_imports[""] = 18;
  std::vector<Value*> inputs;
  for (std::size_t i = 0; i < timed.inputs.size(); ++i) {
    Value* input = graph.add_input(std::string(type.ports[i].name));
    input->type = ElementType::f32;
    input->shape = Shape(timed.inputs[i].extents.begin(), timed.inputs[i].extents.end());
    inputs.push_back(input);
  }
  const auto op = make_operator(type, timed.attributes);
  const Node* node = add_operator_node(graph, *op, inputs, {std::string(type.ports[type.input_count()].name)});
  graph.add_output(*node->outputs[0]);
  if (!attach_functions(model).empty()) return false;
  (void)infer_shapes(model);
  return true;
}

}  // namespace

void write_timed_models(const std::filesystem::path& folder) {
  std::size_t index = 0;
  for (const OperatorTimings& each : operator_timings()) {
    for (const TimedCase& timed : each.timings) {
      graft::Model model;
      if (is_plain_f32(timed) && make_model(*each.type, timed, model)) {
        write_onnx(model, folder / (std::to_string(index) + ".onnx"));
      }
      ++index;
    }
  }
}

}  // namespace graft::toolkit
