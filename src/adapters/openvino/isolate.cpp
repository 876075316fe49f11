// A transformation rewrites a pattern that ends in one node; an unknown operation before that node ends the pattern.
#include "adapters/openvino/isolate.hpp"

#include <memory>
#include <openvino/op/constant.hpp>
#include <openvino/op/op.hpp>

namespace graft {
namespace {

class BarrierNode : public ov::op::Op {
 public:
  OPENVINO_OP("Barrier", "graft");

  BarrierNode() = default;
  explicit BarrierNode(const ov::Output<ov::Node>& input) : Op({input}) { constructor_validate_and_infer_types(); }

  void validate_and_infer_types() override {
    set_output_type(0, get_input_element_type(0), get_input_partial_shape(0));
  }
  std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override {
    return std::make_shared<BarrierNode>(inputs.at(0));
  }
  bool visit_attributes(ov::AttributeVisitor& /*visitor*/) override { return true; }
  bool has_evaluate() const override { return true; }
  bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override {
    outputs[0].set_shape(inputs[0].get_shape());
    inputs[0].copy_to(outputs[0]);
    return true;
  }
};

}  // namespace

std::string failed_transformation_root(std::string_view message) {
  constexpr std::string_view begin = "END: node: ";
  if (message.find("CALLBACK HAS THROWN") == std::string_view::npos) return {};
  const std::size_t found = message.find(begin);
  if (found == std::string_view::npos) return {};
  std::string_view type = message.substr(found + begin.size());
  type = type.substr(0, type.find(' '));
  const std::size_t version = type.rfind("::");
  return std::string(version == std::string_view::npos ? type : type.substr(version + 2));
}

bool isolate_nodes(ov::Model& model, std::string_view type) {
  bool found = false;
  for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) {
    if (node->get_type_name() != type) continue;
    for (ov::Input<ov::Node> input : node->inputs()) {
      const ov::Output<ov::Node> source = input.get_source_output();
      if (!source.get_element_type().is_real() || ov::is_type<ov::op::v0::Constant>(source.get_node())) continue;
      input.replace_source_output(std::make_shared<BarrierNode>(source));
      found = true;
    }
  }
  if (found) model.validate_nodes_and_infer_types();
  return found;
}

}  // namespace graft
