// Each fault was found by ONNX's own tests of the operators (tests/import/test_onnx_backend.py).
#include "adapters/openvino/guards.hpp"

#include <fmt/format.h>

#include <openvino/op/add.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/divide.hpp>
#include <openvino/op/floor_mod.hpp>
#include <openvino/op/gather.hpp>
#include <openvino/op/gather_elements.hpp>
#include <openvino/op/gather_nd.hpp>
#include <openvino/op/greater.hpp>
#include <openvino/op/greater_eq.hpp>
#include <openvino/op/less.hpp>
#include <openvino/op/logical_or.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/maximum.hpp>
#include <openvino/op/minimum.hpp>
#include <openvino/op/mod.hpp>
#include <openvino/op/multiply.hpp>
#include <openvino/op/power.hpp>
#include <openvino/op/reduce_logical_or.hpp>
#include <openvino/op/reshape.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/scatter_elements_update.hpp>
#include <openvino/op/shape_of.hpp>
#include <openvino/op/slice.hpp>
#include <openvino/op/squeeze.hpp>
#include <openvino/op/subtract.hpp>
#include <openvino/op/util/arithmetic_reduction.hpp>
#include <openvino/op/util/gather_base.hpp>
#include <openvino/op/util/gather_nd_base.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <openvino/op/util/scatter_elements_update_base.hpp>
#include <string_view>

namespace graft {
namespace {

std::string fault_of(const Node& node) {
  const std::int64_t opset = node.graph->opset();
  const std::string& type = node.op_type;
  if (type == "LRN") {
    const float beta = node.float_or("beta", 0.75F);
    if (beta != 0.5F && beta != 0.75F) return fmt::format("`beta` is {}; it is right for 0.5 and 0.75", beta);
  }
  if (type == "Resize" && node.string_or("mode", "nearest") == "cubic" && node.int_or("exclude_outside", 0) != 0) {
    return "`exclude_outside` of a cubic Resize is ignored";
  }
  if ((type == "GRU" || type == "LSTM" || type == "RNN") && node.int_or("layout", 0) != 0) {
    return "`layout` is 1; it is right for 0";
  }
  if (type == "Attention") {
    for (const char* window : {"left_window_size", "right_window_size"}) {
      if (node.int_or(window, -1) >= 0) return fmt::format("`{}` is ignored", window);
    }
    const bool has_mask = node.input(3) != nullptr;
    const bool has_past = node.input(4) != nullptr;
    if (node.int_or("is_causal", 0) != 0 && has_mask && has_past) {
      return "`is_causal` is wrong together with a mask and past keys";
    }
  }
  if (type == "BitShift") {
    const Value* data = node.input(0);
    if (data != nullptr && data->type) {
      const ElementType element = *data->type;
      if (element == ElementType::i8 || element == ElementType::i16 || element == ElementType::i32 ||
          element == ElementType::i64) {
        return "it is wrong for signed integers";
      }
    }
  }
  if (type == "DFT" && opset < 20 && node.int_or("onesided", 0) != 0) return "`onesided` adds or loses a dimension";
  return "";
}

using Out = ov::Output<ov::Node>;

Out integer(const ov::element::Type& type, std::int64_t value) {
  return ov::op::v0::Constant::create(type, ov::Shape{1}, {value})->output(0);
}

/// What an index has to be below; of the shape of the last dimension of the indices, or of one element.
Out limits_of(const ov::Node& node, const ov::element::Type& type) {
  using namespace ov::op;  // NOLINT(google-build-using-namespace)
  const auto shape = std::make_shared<v3::ShapeOf>(node.input_value(0), ov::element::i64);
  const Out indices = node.input_value(1);
  const auto zero = ov::op::v0::Constant::create(ov::element::i64, {}, {0});
  Out part;
  if (const auto* gather = dynamic_cast<const util::GatherNDBase*>(&node)) {
    const auto begin = integer(ov::element::i64, static_cast<std::int64_t>(gather->get_batch_dims()));
    const auto dims = std::make_shared<v3::ShapeOf>(indices, ov::element::i64);
    const auto count = std::make_shared<v8::Gather>(dims, integer(ov::element::i64, -1), zero);
    const auto end = std::make_shared<v1::Add>(begin, count);
    part = std::make_shared<v8::Slice>(shape, begin, end, integer(ov::element::i64, 1));
  } else {
    Out axis;
    if (const auto* elements = dynamic_cast<const v6::GatherElements*>(&node)) {
      axis = integer(ov::element::i64, elements->get_axis());
    } else {
      const std::size_t input = ov::is_type<util::GatherBase>(&node) ? 2 : 3;
      axis = std::make_shared<v1::Reshape>(node.input_value(input), integer(ov::element::i64, 1), false);
    }
    part = std::make_shared<v8::Gather>(shape, axis, zero);
  }
  return std::make_shared<v0::Convert>(part, type);
}

/// Whether one element is true.
Out any_of(const Out& flags) {
  using namespace ov::op;  // NOLINT(google-build-using-namespace)
  const auto flat = std::make_shared<v1::Reshape>(flags, integer(ov::element::i64, -1), false);
  return std::make_shared<v1::ReduceLogicalOr>(flat, integer(ov::element::i64, 0), false);
}

/// In place of the indices: those brought into range. Returns whether one was outside.
Out guard_index(ov::Node& node) {
  using namespace ov::op;  // NOLINT(google-build-using-namespace)
  const Out indices = node.input_value(1);
  const ov::element::Type type = indices.get_element_type();
  const Out high = limits_of(node, type);
  const auto low = std::make_shared<v1::Multiply>(high, integer(type, -1));
  const auto below = std::make_shared<v1::Less>(indices, low);
  const auto above = std::make_shared<v1::GreaterEqual>(indices, high);
  Out outside = any_of(std::make_shared<v1::LogicalOr>(below, above));
  const auto last = std::make_shared<v1::Subtract>(high, integer(type, 1));
  Out bounded = std::make_shared<v1::Minimum>(std::make_shared<v1::Maximum>(indices, low), last);
  // The limits have one dimension, and a single index none.
  if (indices.get_partial_shape().rank() == 0) bounded = std::make_shared<v0::Squeeze>(bounded);
  node.input(1).replace_source_output(bounded);
  return outside;
}

bool has_guarded_indices(const ov::Node& node) {
  const bool has_indices =
      dynamic_cast<const ov::op::util::GatherNDBase*>(&node) != nullptr ||
      dynamic_cast<const ov::op::util::ScatterElementsUpdateBase*>(&node) != nullptr ||
      ov::is_type<ov::op::v6::GatherElements>(&node) ||
      (ov::is_type<ov::op::util::GatherBase>(&node) && node.get_input_partial_shape(1).rank().is_static());
  return has_indices && ov::as_type_ptr<ov::op::v0::Constant>(node.get_input_node_shared_ptr(1)) == nullptr;
}

/// f32 holds every integer up to here.
constexpr std::int64_t exact_in_f32 = 1 << 24;

/// Integers that the plugin calculates in f32. Additions, products and comparisons are exact.
bool calculates_integers_in_f32(const ov::Node& node) {
  const bool in_f32 = ov::is_type<ov::op::v1::Divide>(&node) || ov::is_type<ov::op::v1::Mod>(&node) ||
                      ov::is_type<ov::op::v1::FloorMod>(&node) || ov::is_type<ov::op::v1::Power>(&node) ||
                      ov::is_type<ov::op::v0::MatMul>(&node) || ov::is_type<ov::op::util::ArithmeticReduction>(&node);
  const ov::element::Type type = node.get_output_element_type(0);
  return in_f32 &&
         (type == ov::element::i32 || type == ov::element::i64 || type == ov::element::u32 || type == ov::element::u64);
}

Out is_large(const Out& integers) {
  using namespace ov::op;  // NOLINT(google-build-using-namespace)
  const ov::element::Type type = integers.get_element_type();
  const auto above = std::make_shared<v1::Greater>(integers, integer(type, exact_in_f32));
  if (!type.is_signed()) return any_of(above);
  const auto below = std::make_shared<v1::Less>(integers, integer(type, -exact_in_f32));
  return any_of(std::make_shared<v1::LogicalOr>(below, above));
}

/// Whether a term or the result is too large to be right.
Out guard_size(ov::Node& node) {
  Out any = is_large(node.output(0));
  const bool is_reduction = ov::is_type<ov::op::util::ArithmeticReduction>(&node);
  const std::size_t terms = is_reduction ? 1 : node.get_input_size();
  for (std::size_t i = 0; i < terms; ++i) {
    any = std::make_shared<ov::op::v1::LogicalOr>(any, is_large(node.input_value(i)));
  }
  return any;
}

void guard_in(ov::Model& model, std::vector<Guard>* guards) {
  for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) {
    if (const auto parent = ov::as_type_ptr<ov::op::util::MultiSubGraphOp>(node)) {
      for (const std::shared_ptr<ov::Model>& body : parent->get_functions()) guard_in(*body, nullptr);
    }
    const bool by_index = has_guarded_indices(*node);
    if (!by_index && (guards == nullptr || !calculates_integers_in_f32(*node))) continue;
    const Out failed = by_index ? guard_index(*node) : guard_size(*node);
    if (guards == nullptr) continue;
    model.add_results({std::make_shared<ov::op::v0::Result>(failed)});
    guards->push_back({fmt::format("'{}' ({})", node->get_friendly_name(), node->get_type_name()),
                       by_index
                           ? "an index lies outside of the tensor"
                           : "the CPU engine calculates such integers in f32, where those beyond 2^24 are rounded"});
  }
}

}  // namespace

void refuse_known_faults(const Model& model) {
  model.graph().for_each_node([&](const Node& node) {
    const std::string fault = node.domain.empty() ? fault_of(node) : std::string();
    if (fault.empty()) return;
    throw Error(fmt::format("{}: {}: the CPU engine, OpenVINO 2026.4, calculates it wrongly: {}", model.source,
                            describe(node), fault));
  });
}

std::vector<Guard> add_guards(ov::Model& model) {
  std::vector<Guard> guards;
  guard_in(model, &guards);
  if (!guards.empty()) model.validate_nodes_and_infer_types();
  return guards;
}

}  // namespace graft
