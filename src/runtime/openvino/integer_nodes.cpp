// Builds the rounding to 8 bits from single operations of the plugin, and constants that the plugin does not fold.
#include "runtime/openvino/integer_nodes.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <openvino/op/add.hpp>
#include <openvino/op/clamp.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/divide.hpp>
#include <openvino/op/equal.hpp>
#include <openvino/op/round.hpp>
#include <openvino/op/select.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>

#include "runtime/openvino/element_types.hpp"
#include "runtime/openvino/keep_nan.hpp"
#include "runtime/openvino/pass_through.hpp"

namespace graft::runtime {

ov::OutputVector make_quantize(const ov::frontend::NodeContext& node) {
  const ov::Output<ov::Node> scale = node.get_input(1);
  const ov::Output<ov::Node> zero_point = node.get_input(2);
  const auto type = to_openvino(static_cast<onnx::ElementType>(node.get_attribute<std::int64_t>("to")));
  const bool is_signed = type == ov::element::i8;
  const double lowest = is_signed ? std::numeric_limits<std::int8_t>::min() : 0;
  const double highest = is_signed ? std::numeric_limits<std::int8_t>::max() : std::numeric_limits<std::uint8_t>::max();
  const auto share = std::make_shared<ov::op::v1::Divide>(node.get_input(0), scale);
  // OpenVINO uses this mark for a division that must not be replaced with a multiplication by the reciprocal, which
  // would round twice.
  share->get_rt_info()["nonconvertable_divide_0"] = true;
  const auto zero = ov::op::v0::Constant::create(ov::element::f32, {}, {0});
  const auto is_number = std::make_shared<ov::op::v1::Equal>(share, share);
  const auto number = std::make_shared<ov::op::v1::Select>(is_number, share, zero);
  const auto step = std::make_shared<ov::op::v5::Round>(number, ov::op::v5::Round::RoundMode::HALF_TO_EVEN);
  const auto moved = std::make_shared<ov::op::v1::Add>(step, zero_point);
  const auto inside = std::make_shared<ov::op::v0::Clamp>(moved, lowest, highest);
  inside->get_rt_info()[without_nan] = true;
  return std::make_shared<ov::op::v0::Convert>(inside, type)->outputs();
}

// The plugin computes the node once, because its input is constant. But the plugin does not treat the result as a
// constant, so it cannot multiply the value into weights, replace it with its reciprocal, or fuse multiplication and
// addition with one rounding.
ov::OutputVector make_fixed(const ov::frontend::NodeContext& node) {
  return std::make_shared<PassThroughNode>(node.get_input(0))->outputs();
}

void release_fixed(ov::Model& model) {
  for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) {
    if (ov::is_type<PassThroughNode>(node)) node->output(0).replace(node->input_value(0));
    if (const auto parent = ov::as_type_ptr<ov::op::util::MultiSubGraphOp>(node)) {
      for (const std::shared_ptr<ov::Model>& body : parent->get_functions()) release_fixed(*body);
    }
  }
}

}  // namespace graft::runtime
