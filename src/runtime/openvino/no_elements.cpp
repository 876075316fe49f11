// Visits every node, including the bodies of branches and loops.
#include "runtime/openvino/no_elements.hpp"

#include <memory>
#include <openvino/op/constant.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>

namespace graft::runtime {

void leave_out_what_has_no_elements(ov::Model& model) {
  for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) {
    if (const auto parent = ov::as_type_ptr<ov::op::util::MultiSubGraphOp>(node)) {
      for (const std::shared_ptr<ov::Model>& body : parent->get_functions()) leave_out_what_has_no_elements(*body);
      continue;
    }
    if (ov::is_type<ov::op::v0::Parameter>(node) || ov::is_type<ov::op::v0::Constant>(node) ||
        ov::is_type<ov::op::v0::Result>(node)) {
      continue;
    }
    for (const ov::Output<ov::Node>& output : node->outputs()) {
      if (output.get_partial_shape().is_dynamic() || ov::shape_size(output.get_shape()) != 0) continue;
      const auto constant =
          std::make_shared<ov::op::v0::Constant>(ov::Tensor(output.get_element_type(), output.get_shape()));
      constant->set_friendly_name(node->get_friendly_name());
      ov::Output<ov::Node>(output).replace(constant);
    }
  }
}

}  // namespace graft::runtime
