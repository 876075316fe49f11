// Corrects results for NaN and infinities. Each fault was found by a comparison of single operators with ONNX Runtime
// (tests/runtime/openvino/test_not_finite.py).
#include "runtime/openvino/keep_nan.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <openvino/core/model.hpp>
#include <openvino/core/type/bfloat16.hpp>
#include <openvino/core/type/float16.hpp>
#include <openvino/op/abs.hpp>
#include <openvino/op/add.hpp>
#include <openvino/op/clamp.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/equal.hpp>
#include <openvino/op/exp.hpp>
#include <openvino/op/gelu.hpp>
#include <openvino/op/greater.hpp>
#include <openvino/op/greater_eq.hpp>
#include <openvino/op/hard_sigmoid.hpp>
#include <openvino/op/less.hpp>
#include <openvino/op/less_eq.hpp>
#include <openvino/op/log_softmax.hpp>
#include <openvino/op/maximum.hpp>
#include <openvino/op/minimum.hpp>
#include <openvino/op/mod.hpp>
#include <openvino/op/not_equal.hpp>
#include <openvino/op/reduce_max.hpp>
#include <openvino/op/reduce_min.hpp>
#include <openvino/op/reduce_sum.hpp>
#include <openvino/op/relu.hpp>
#include <openvino/op/select.hpp>
#include <openvino/op/softmax.hpp>
#include <openvino/op/subtract.hpp>
#include <openvino/op/util/max_pool_base.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <optional>
#include <set>

namespace graft::runtime {
namespace {

using Out = ov::Output<ov::Node>;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Returns `value` as a constant in the type of `like`. Also works for an infinity in a 16-bit type, which
/// Constant::create refuses.
Out number(float value, const Out& like) {
  const ov::element::Type type = like.get_element_type();
  if (type == ov::element::f16) {
    const ov::float16 narrow(value);
    return std::make_shared<ov::op::v0::Constant>(type, ov::Shape{}, &narrow)->output(0);
  }
  if (type == ov::element::bf16) {
    const ov::bfloat16 narrow(value);
    return std::make_shared<ov::op::v0::Constant>(type, ov::Shape{}, &narrow)->output(0);
  }
  return ov::op::v0::Constant::create(type, {}, {value})->output(0);
}

/// Returns x != x, which is true for NaN only. It replaces IsNaN because OpenVINO does not fold IsNaN.
Out is_nan(const Out& x) { return std::make_shared<ov::op::v1::NotEqual>(x, x); }

Out select(const Out& condition, const Out& then, const Out& otherwise) {
  return std::make_shared<ov::op::v1::Select>(condition, then, otherwise);
}

bool is_elementwise(const ov::Node& node) {
  return ov::is_type<ov::op::v0::Relu>(&node) || ov::is_type<ov::op::v0::Clamp>(&node) ||
         ov::is_type<ov::op::v0::Exp>(&node) || ov::is_type<ov::op::v0::HardSigmoid>(&node);
}

std::optional<std::int64_t> softmax_axis(const ov::Node& node) {
  if (const auto* softmax = ov::as_type<const ov::op::v1::Softmax>(&node))
    return static_cast<std::int64_t>(softmax->get_axis());
  if (const auto* softmax = ov::as_type<const ov::op::v8::Softmax>(&node)) return softmax->get_axis();
  if (const auto* softmax = ov::as_type<const ov::op::v5::LogSoftmax>(&node)) return softmax->get_axis();
  return std::nullopt;
}

/// Corrects a Softmax or LogSoftmax: NaN or positive infinity anywhere in a row turns the whole row into NaN, because
/// the formula subtracts infinity from infinity.
Out softmax_with_nan(const Out& x, const Out& y, std::int64_t axis) {
  const auto axes = ov::op::v0::Constant::create(ov::element::i64, ov::Shape{1}, {axis});
  const Out is_finite = std::make_shared<ov::op::v1::Less>(x, number(infinity, x));
  const Out nothing_or_nan = select(is_finite, number(0, x), number(nan, x));
  return std::make_shared<ov::op::v1::Add>(y, std::make_shared<ov::op::v1::ReduceSum>(nothing_or_nan, axes, true));
}

/// Corrects the maximum or minimum over sets of elements (ReduceMax, ReduceMin and pooling). The result is NaN if a set
/// contains NaN. The maximum of a set that contains only -inf is -inf, and the minimum of only +inf is +inf; OpenVINO's
/// CPU plugin returns the lowest or highest finite number instead.
Out extreme_with_nan(const ov::Node& node, const Out& y) {
  constexpr float has_nan = 2;
  constexpr float has_number = 1;
  constexpr float between = 0.5;
  const Out x = node.input_value(0);
  const bool is_minimum = ov::is_type<ov::op::v1::ReduceMin>(&node);
  const Out beaten = number(is_minimum ? infinity : -infinity, x);
  const Out is_beaten = std::make_shared<ov::op::v1::Equal>(x, beaten);
  const Out kinds = select(is_nan(x), number(has_nan, x), select(is_beaten, number(0, x), number(has_number, x)));
  Out kind;
  if (const auto* reduction = dynamic_cast<const ov::op::util::ArithmeticReductionKeepDims*>(&node)) {
    kind = std::make_shared<ov::op::v1::ReduceMax>(kinds, node.input_value(1), reduction->get_keep_dims());
  } else {
    kind = node.clone_with_new_inputs({kinds})->output(0);
  }
  const Out any_nan = std::make_shared<ov::op::v1::Greater>(kind, number(has_number + between, x));
  const Out all_beaten = std::make_shared<ov::op::v1::Less>(kind, number(between, x));
  return select(any_nan, number(nan, x), select(all_beaten, beaten, y));
}

/// Corrects Mod: x mod infinity is x for every finite x, and NaN otherwise.
Out remainder_of_infinity(const Out& x, const Out& divisor, const Out& y) {
  const Out size = std::make_shared<ov::op::v0::Abs>(divisor);
  const Out is_infinite = std::make_shared<ov::op::v1::Equal>(size, number(infinity, x));
  const Out zero_or_nan = std::make_shared<ov::op::v1::Subtract>(x, x);
  return select(is_infinite, std::make_shared<ov::op::v1::Add>(x, zero_or_nan), y);
}

/// Returns the corrected value for the node's output `y`, or nothing if OpenVINO's CPU plugin computes the output
/// correctly.
std::optional<Out> replacement(const ov::Node& node, const Out& y) {
  if (node.get_rt_info().contains(without_nan)) return std::nullopt;
  if (is_elementwise(node)) {
    const Out x = node.input_value(0);
    return select(is_nan(x), x, y);
  }
  if (ov::is_type<ov::op::v1::Maximum>(&node) || ov::is_type<ov::op::v1::Minimum>(&node)) {
    const Out a = node.input_value(0);
    const Out b = node.input_value(1);
    return select(is_nan(a), a, select(is_nan(b), b, y));
  }
  if (const auto axis = softmax_axis(node)) return softmax_with_nan(node.input_value(0), y, *axis);
  if (ov::is_type<ov::op::util::MaxPoolBase>(&node) || ov::is_type<ov::op::v1::ReduceMax>(&node) ||
      ov::is_type<ov::op::v1::ReduceMin>(&node)) {
    return extreme_with_nan(node, y);
  }
  if (ov::is_type<ov::op::v0::Gelu>(&node) || ov::is_type<ov::op::v7::Gelu>(&node)) {
    // With AVX-512 the plugin computes Gelu(infinity) as NaN.
    const Out x = node.input_value(0);
    return select(std::make_shared<ov::op::v1::Equal>(x, number(infinity, x)), x, y);
  }
  if (ov::is_type<ov::op::v1::Mod>(&node)) return remainder_of_infinity(node.input_value(0), node.input_value(1), y);
  return std::nullopt;
}

/// Returns Greater and GreaterEqual as Less and LessEqual with exchanged operands; nothing for other nodes. With
/// AVX-512 OpenVINO's CPU plugin computes a > b as not (a <= b), which is true for NaN, but it computes b < a directly.
std::optional<Out> ordered_comparison(const ov::Node& node) {
  if (ov::is_type<ov::op::v1::Greater>(&node)) {
    return std::make_shared<ov::op::v1::Less>(node.input_value(1), node.input_value(0));
  }
  if (ov::is_type<ov::op::v1::GreaterEqual>(&node)) {
    return std::make_shared<ov::op::v1::LessEqual>(node.input_value(1), node.input_value(0));
  }
  return std::nullopt;
}

/// Returns whether the node casts a floating-point tensor to boolean. Every number except 0 becomes true, and so does
/// NaN.
bool is_cast_to_truth(const ov::Node& node) {
  return ov::is_type<ov::op::v0::Convert>(&node) && node.get_output_element_type(0) == ov::element::boolean &&
         node.get_input_element_type(0).is_real();
}

void keep_in(ov::Model& model) {
  for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) {
    if (const auto parent = ov::as_type_ptr<ov::op::util::MultiSubGraphOp>(node)) {
      for (const std::shared_ptr<ov::Model>& body : parent->get_functions()) keep_in(*body);
    }
    if (node->get_output_size() == 0) continue;
    const Out y = node->output(0);
    const std::set<ov::Input<ov::Node>> readers = y.get_target_inputs();
    std::optional<Out> better;
    if (is_cast_to_truth(*node)) {
      const Out x = node->input_value(0);
      better = std::make_shared<ov::op::v1::NotEqual>(x, number(0, x));
    } else if (node->get_input_size() == 2 && node->get_input_element_type(0).is_real() &&
               y.get_element_type() == ov::element::boolean) {
      better = ordered_comparison(*node);
    } else if (y.get_element_type().is_real()) {
      better = replacement(*node, y);
    }
    if (!better) continue;
    for (ov::Input<ov::Node> reader : readers) reader.replace_source_output(*better);
  }
  model.validate_nodes_and_infer_types();
}

}  // namespace

void keep_nan(ov::Model& model) { keep_in(model); }

}  // namespace graft::runtime
