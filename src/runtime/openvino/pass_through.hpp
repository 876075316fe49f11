// A node of this engine that returns its input.
#pragma once

#include <memory>
#include <openvino/op/op.hpp>

namespace graft::runtime {

/// A node that returns its input. No transformation of OpenVINO recognizes the node, so that no pattern matches across
/// it, and its output is never folded into a constant.
class PassThroughNode : public ov::op::Op {
 public:
  OPENVINO_OP("PassThrough", "graft");

  PassThroughNode() = default;
  explicit PassThroughNode(const ov::Output<ov::Node>& input) : Op({input}) { constructor_validate_and_infer_types(); }

  void validate_and_infer_types() override {
    set_output_type(0, get_input_element_type(0), get_input_partial_shape(0));
  }
  std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override {
    return std::make_shared<PassThroughNode>(inputs.at(0));
  }
  bool visit_attributes(ov::AttributeVisitor& /*visitor*/) override { return true; }
  bool can_constant_fold(const ov::OutputVector& /*inputs*/) const override { return false; }
  bool has_evaluate() const override { return true; }
  bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override {
    outputs[0].set_shape(inputs[0].get_shape());
    inputs[0].copy_to(outputs[0]);
    return true;
  }
};

}  // namespace graft::runtime
