// Creates a model with a single node and its function for each timed case.
#include "toolkit/timed_models.hpp"

#include <string>
#include <vector>

#include "onnx/functions.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/shape_inference.hpp"
#include "operator_library/timings.hpp"
#include "ops/operator_case.hpp"

namespace graft::toolkit {
namespace {

bool is_plain_f32(const ops::TimedCase& timed) {
  for (const TensorDesc& desc : timed.inputs) {
    if (desc.dtype != DType::f32 || desc.layout != Layout::linear) return false;
  }
  return true;
}

/// Adds one node of the operator, with the inputs of the benchmark `timed`, and its ONNX function to an empty model.
/// Returns false if standard operators cannot express the operator.
bool make_model(const OperatorType& type, const ops::TimedCase& timed, graft::onnx::Model& model) {
  onnx::Graph& graph = model.graph();
  graph.opset_imports[""] = 18;
  std::vector<onnx::Value*> inputs;
  for (std::size_t i = 0; i < timed.inputs.size(); ++i) {
    onnx::Value* input = graph.add_input(type.input_name(i));
    input->type = onnx::ElementType::f32;
    input->shape = Shape(timed.inputs[i].extents.begin(), timed.inputs[i].extents.end());
    inputs.push_back(input);
  }
  const auto op = ops::make_operator(type, timed.attributes);
  const onnx::Node* node = add_operator_node(graph, *op, inputs, {std::string(type.ports[type.input_count()].name)});
  graph.add_output(*node->outputs[0]);
  if (!attach_functions(model).empty()) return false;
  (void)infer_shapes(model);
  return true;
}

}  // namespace

void write_timed_models(const std::filesystem::path& folder) {
  std::vector<ops::OperatorTimings> all = ops::operator_timings();
  const std::vector<ops::OperatorTimings> loaded = library_timings();
  all.insert(all.end(), loaded.begin(), loaded.end());
  std::size_t index = 0;
  for (const ops::OperatorTimings& each : all) {
    for (const ops::TimedCase& timed : each.timings) {
      graft::onnx::Model model;
      if (is_plain_f32(timed) && make_model(*each.type, timed, model)) {
        onnx::write_onnx(model, folder / (std::to_string(index) + ".onnx"));
      }
      ++index;
    }
  }
}

}  // namespace graft::toolkit
