// Runs each node that is replaced by a constant as a model of its own, in topological order.
#include "runtime/openvino/hold_constants.hpp"

#include <algorithm>
#include <openvino/op/constant.hpp>
#include <openvino/op/op.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/shape_of.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <string_view>
#include <unordered_set>

namespace graft::runtime {
namespace {

/// Returns whether the node generates random numbers, such as RandomUniform and Multinomial.
bool draws_numbers(const ov::Node& node) {
  const std::string_view type = node.get_type_name();
  return type.starts_with("Random") || type == "Multinomial";
}

/// Computes a node whose inputs are constant and returns each output as a Constant. `compile` compiles a model for the
/// CPU plugin. The node itself is not changed: a copy of it, which reads the same constants, is compiled and run.
ov::OutputVector computed_outputs(const ov::Node& node,
                                  const std::function<ov::CompiledModel(const std::shared_ptr<ov::Model>&)>& compile) {
  const std::shared_ptr<ov::Node> copy = node.clone_with_new_inputs(node.input_values());
  const auto alone = std::make_shared<ov::Model>(copy->outputs(), ov::ParameterVector{});
  ov::CompiledModel compiled = compile(alone);
  ov::InferRequest request = compiled.create_infer_request();
  request.infer();
  ov::OutputVector outputs;
  for (std::size_t i = 0; i < node.get_output_size(); ++i) {
    const ov::Tensor tensor = request.get_output_tensor(i);
    outputs.push_back(
        std::make_shared<ov::op::v0::Constant>(tensor.get_element_type(), tensor.get_shape(), tensor.data()));
  }
  return outputs;
}

}  // namespace

void hold_constants(ov::Model& model,
                    const std::function<ov::CompiledModel(const std::shared_ptr<ov::Model>& model)>& compile) {
  std::unordered_set<const ov::Node*> fixed;  // The nodes that do not depend on any input of the model.
  for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) {
    if (const auto parent = ov::as_type_ptr<ov::op::util::MultiSubGraphOp>(node)) {
      for (const std::shared_ptr<ov::Model>& body : parent->get_functions()) hold_constants(*body, compile);
      continue;
    }
    if (ov::is_type<ov::op::v0::Constant>(node)) {
      fixed.insert(node.get());
      continue;
    }
    const ov::OutputVector inputs = node->input_values();
    // OpenVINO folds a ShapeOf of a fixed shape only later, which would leave the nodes after it to the first run.
    if (ov::is_type<ov::op::util::ShapeOfBase>(node) && node->get_input_partial_shape(0).is_static()) {
      const auto shape = ov::op::v0::Constant::create(node->get_output_element_type(0), node->get_output_shape(0),
                                                      node->get_input_shape(0));
      shape->set_friendly_name(node->get_friendly_name());
      fixed.insert(shape.get());
      node->output(0).replace(shape);
      continue;
    }
    const bool is_fixed = !inputs.empty() && !ov::is_type<ov::op::v0::Result>(node) && !draws_numbers(*node) &&
                          std::all_of(inputs.begin(), inputs.end(), [&](const ov::Output<ov::Node>& input) {
                            return fixed.contains(input.get_node());
                          });
    if (!is_fixed) continue;
    fixed.insert(node.get());
    if (node->has_evaluate()) continue;
    const ov::OutputVector outputs = computed_outputs(*node, compile);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      outputs[i].get_node()->set_friendly_name(node->get_friendly_name());
      fixed.insert(outputs[i].get_node());
      node->output(i).replace(outputs[i]);
    }
  }
}

}  // namespace graft::runtime
