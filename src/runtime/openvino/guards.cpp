// Works around known faults of OpenVINO's CPU plugin. Each was found with ONNX's own operator tests
// (tests/import/test_onnx_backend.py).
#include "runtime/openvino/guards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <openvino/op/add.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/divide.hpp>
#include <openvino/op/floor_mod.hpp>
#include <openvino/op/gather.hpp>
#include <openvino/op/gather_elements.hpp>
#include <openvino/op/gather_nd.hpp>
#include <openvino/op/gru_sequence.hpp>
#include <openvino/op/lstm_sequence.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/maximum.hpp>
#include <openvino/op/mod.hpp>
#include <openvino/op/op.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/power.hpp>
#include <openvino/op/reshape.hpp>
#include <openvino/op/rnn_sequence.hpp>
#include <openvino/op/scatter_elements_update.hpp>
#include <openvino/op/shape_of.hpp>
#include <openvino/op/slice.hpp>
#include <openvino/op/util/arithmetic_reduction.hpp>
#include <openvino/op/util/gather_base.hpp>
#include <openvino/op/util/gather_nd_base.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <openvino/op/util/scatter_elements_update_base.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graft/setting.hpp"
#include "onnx/schema.hpp"

namespace graft::runtime {
namespace {

bool is_narrow_integer(onnx::ElementType type) {
  const int bits = onnx::bits_of(type);
  return is_integer(type) && (bits == 8 || bits == 16);
}

std::string fault_of(const onnx::Node& node) {
  const std::int64_t opset = node.graph->opset();
  const std::string& type = node.op_type;
  if (type == "LRN") {
    const float beta = node.float_or("beta", 0.75F);
    if (beta != 0.5F && beta != 0.75F)
      return fmt::format("its values are wrong for `beta` = {} and right for 0.5 and 0.75", beta);
  }
  if (type == "Resize" && node.string_or("mode", "nearest") == "cubic" && node.int_or("exclude_outside", 0) != 0) {
    return "it ignores `exclude_outside` of a cubic Resize";
  }
  if (type == "AveragePool" && node.int_or("ceil_mode", 0) != 0 && node.int_or("count_include_pad", 0) != 0) {
    return "with `ceil_mode` and `count_include_pad` its averages count positions beyond the padding";
  }
  if (type == "Add" || type == "Sub" || type == "Mul") {
    const onnx::Value* left = node.input(0);
    if (left != nullptr && left->type && is_narrow_integer(*left->type)) {
      return fmt::format("results that overflow {} do not wrap around", to_string(*left->type));
    }
  }
  if (type == "CumSum") {
    const onnx::Value* data = node.input(0);
    const auto number = constant_ints(node.input(1));
    if (data != nullptr && data->shape && number && number->size() == 1) {
      const auto rank = static_cast<std::int64_t>(data->shape->size());
      if (number->front() < -rank || number->front() >= rank) {
        return fmt::format("it accepts the axis {} of a tensor with {} dimension{}, which ONNX does not allow",
                           number->front(), rank, rank == 1 ? "" : "s");
      }
    }
  }
  if (type == "LSTM" && node.int_or("input_forget", 0) != 0) return "it ignores `input_forget`";
  if (has_trait(node, onnx::trait::recurrent) && node.int_or("layout", 0) != 0) {
    return "its values are wrong for `layout` = 1 and right for 0";
  }
  if (type == "Attention") {
    for (const char* window : {"left_window_size", "right_window_size"}) {
      if (node.int_or(window, -1) >= 0) return fmt::format("it ignores `{}`", window);
    }
    const bool has_mask = node.input(3) != nullptr;
    const bool has_past = node.input(4) != nullptr;
    if (node.int_or("is_causal", 0) != 0 && has_mask && has_past) {
      return "its values are wrong for `is_causal` = 1 together with a mask and past keys";
    }
  }
  if (type == "BitShift") {
    const onnx::Value* data = node.input(0);
    if (data != nullptr && data->type) {
      const onnx::ElementType element = *data->type;
      if (element == onnx::ElementType::i8 || element == onnx::ElementType::i16 || element == onnx::ElementType::i32 ||
          element == onnx::ElementType::i64) {
        return fmt::format("its values are wrong for signed integers ({}) and right for unsigned ones",
                           to_string(element));
      }
    }
  }
  if (type == "DFT" && node.int_or("onesided", 0) != 0) {
    return "its output has one dimension too many or too few for `onesided` = 1";
  }
  if (type == "DFT" && opset >= 20) {
    return "since operator set 20 its values are wrong for most attributes, and the affected attributes differ between "
           "runs";
  }
  return "";
}

using Out = ov::Output<ov::Node>;

/// The largest integer up to which f32 holds every integer.
constexpr std::int64_t exact_in_f32 = 1 << 24;

struct Guard {
  std::string node;  ///< The node's name and operator for messages, such as "'gather' (GatherND)".
  bool by_index = false;
  bool divides = false;  ///< Whether the third input of the guard contains divisors, which must not be 0.
};

std::string describe(const ov::Node& node) {
  return fmt::format("'{}' ({})", node.get_friendly_name(), node.get_type_name());
}

Out integer(const ov::element::Type& type, std::int64_t value) {
  return ov::op::v0::Constant::create(type, ov::Shape{1}, {value})->output(0);
}

/// Returns the exclusive upper limits of the indices: one number, or one for each element along the last dimension of
/// the indices.
Out limits_of(const ov::Node& node) {
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
  return part;
}

template <class Number>
std::span<const Number> numbers_of(const ov::Tensor& tensor) {
  return {tensor.data<const Number>(), tensor.get_size()};
}

/// Passes its first input through unchanged, and throws if the guarded node would compute wrong results.
///
/// The guard is inserted between two nodes of the model, and not added as a further output of the model. Measured with
/// OpenVINO 2026.4.1: with a further output computed from an index of ScatterElements, a two-stage detector returned
/// wrong results in six runs of six, and correct results without this output.
class GuardNode : public ov::op::Op {
 public:
  OPENVINO_OP("Guard", "graft");

  GuardNode() = default;
  /// Creates a guard. All inputs must be i32, to which OpenVINO's CPU plugin converts every integer type.
  GuardNode(const ov::OutputVector& inputs, Guard guard) : Op(inputs), guard_(std::move(guard)) {
    constructor_validate_and_infer_types();
  }

  void validate_and_infer_types() override {
    set_output_type(0, get_input_element_type(0), get_input_partial_shape(0));
  }
  std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override {
    return std::make_shared<GuardNode>(inputs, guard_);
  }
  bool visit_attributes(ov::AttributeVisitor& visitor) override {
    visitor.on_attribute("node", guard_.node);
    return true;
  }
  bool has_evaluate() const override { return true; }
  /// Folds the node if the constant passes the check. Otherwise returns false, so that the run throws and names the
  /// node.
  bool constant_fold(ov::OutputVector& outputs, const ov::OutputVector& inputs) override {
    try {
      return Op::constant_fold(outputs, inputs);
    } catch (const ov::Exception&) {
      return false;
    }
  }

  bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override {
    if (guard_.by_index) {
      check_indices(numbers_of<std::int32_t>(inputs[0]), numbers_of<std::int32_t>(inputs[1]));
    } else if (guard_.divides && has_zero(inputs[2])) {
      fail("an integer is divided by zero");
    } else if (!std::all_of(inputs.begin(), inputs.end(), exact)) {
      fail(std::string(beyond_exact_integers));
    }
    outputs[0].set_shape(inputs[0].get_shape());
    inputs[0].copy_to(outputs[0]);
    return true;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { OPENVINO_THROW(guard_.node, ": ", reason); }

  /// Throws if an index is outside its limits, which repeat along the last dimension of the indices.
  void check_indices(std::span<const std::int32_t> indices, std::span<const std::int32_t> limits) const {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::int64_t limit = limits[i % limits.size()];
      if (indices[i] >= -limit && indices[i] < limit) continue;
      fail(limit == 0
               ? fmt::format("an index lies outside of the tensor: {} along an axis without elements", indices[i])
               : fmt::format("an index lies outside of the tensor: {}; it must be between {} and {}", indices[i],
                             -limit, limit - 1));
    }
  }

  static bool has_zero(const ov::Tensor& integers) {
    const std::span<const std::int32_t> numbers = numbers_of<std::int32_t>(integers);
    return std::find(numbers.begin(), numbers.end(), 0) != numbers.end();
  }

  static bool exact(const ov::Tensor& integers) {
    const std::span<const std::int32_t> numbers = numbers_of<std::int32_t>(integers);
    return std::all_of(numbers.begin(), numbers.end(),
                       [](std::int32_t number) { return number >= -exact_in_f32 && number <= exact_in_f32; });
  }

  Guard guard_;
};

Out in_i32(const Out& integers) {
  if (integers.get_element_type() == ov::element::i32) return integers;
  return std::make_shared<ov::op::v0::Convert>(integers, ov::element::i32);
}

/// Inserts a node with this guard, which checks all tensors, and returns its output: the first tensor in its own type.
Out guarded(const ov::OutputVector& tensors, Guard guard) {
  ov::OutputVector inputs;
  for (const Out& tensor : tensors) inputs.push_back(in_i32(tensor));
  const Out checked = std::make_shared<GuardNode>(inputs, std::move(guard));
  const ov::element::Type type = tensors.front().get_element_type();
  return type == ov::element::i32 ? checked : std::make_shared<ov::op::v0::Convert>(checked, type)->output(0);
}

void guard_index(ov::Node& node) {
  const Out indices = node.input_value(1);
  node.input(1).replace_source_output(guarded({indices, limits_of(node)}, {.node = describe(node), .by_index = true}));
}

/// Returns the axes of the first input that the indices address, or nothing if they are not known before the run.
std::optional<std::vector<std::int64_t>> indexed_axes(const ov::Node& node, const ov::Shape& indices) {
  if (const auto* gather = dynamic_cast<const ov::op::util::GatherNDBase*>(&node)) {
    if (indices.empty()) return std::nullopt;
    std::vector<std::int64_t> axes(indices.back());
    std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(gather->get_batch_dims()));
    return axes;
  }
  if (const auto* elements = dynamic_cast<const ov::op::v6::GatherElements*>(&node)) return {{elements->get_axis()}};
  const std::size_t input = ov::is_type<ov::op::util::GatherBase>(&node) ? 2 : 3;
  const auto axis = ov::as_type_ptr<ov::op::v0::Constant>(node.get_input_node_shared_ptr(input));
  return axis == nullptr ? std::nullopt : std::optional(axis->cast_vector<std::int64_t>());
}

/// Returns whether the indices are constants within the bounds of the indexed tensor, whose size must be known.
bool has_safe_indices(const ov::Node& node) {
  const auto indices = ov::as_type_ptr<ov::op::v0::Constant>(node.get_input_node_shared_ptr(1));
  const ov::PartialShape& shape = node.get_input_partial_shape(0);
  if (indices == nullptr || shape.rank().is_dynamic()) return false;
  const auto axes = indexed_axes(node, indices->get_shape());
  if (!axes || axes->empty()) return false;
  const std::int64_t rank = shape.rank().get_length();
  std::vector<std::int64_t> limits;
  for (const std::int64_t axis : *axes) {
    const std::int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank || shape[static_cast<std::size_t>(at)].is_dynamic()) return false;
    limits.push_back(shape[static_cast<std::size_t>(at)].get_length());
  }
  const std::vector<std::int64_t> numbers = indices->cast_vector<std::int64_t>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::int64_t limit = limits[i % limits.size()];
    if (numbers[i] < -limit || numbers[i] >= limit) return false;
  }
  return true;
}

bool has_guarded_indices(const ov::Node& node) {
  const bool has_indices =
      dynamic_cast<const ov::op::util::GatherNDBase*>(&node) != nullptr ||
      dynamic_cast<const ov::op::util::ScatterElementsUpdateBase*>(&node) != nullptr ||
      ov::is_type<ov::op::v6::GatherElements>(&node) ||
      (ov::is_type<ov::op::util::GatherBase>(&node) && node.get_input_partial_shape(1).rank().is_static());
  return has_indices && !has_safe_indices(node);
}

/// Returns whether OpenVINO's CPU plugin computes this integer operator in f32. Returns false for additions, products
/// and comparisons, which the plugin computes exactly.
bool computes_integers_in_f32(const ov::Node& node) {
  const bool in_f32 = ov::is_type<ov::op::v1::Divide>(&node) || ov::is_type<ov::op::v1::Mod>(&node) ||
                      ov::is_type<ov::op::v1::FloorMod>(&node) || ov::is_type<ov::op::v1::Power>(&node) ||
                      ov::is_type<ov::op::v0::MatMul>(&node) || ov::is_type<ov::op::util::ArithmeticReduction>(&node);
  const ov::element::Type type = node.get_output_element_type(0);
  return in_f32 &&
         (type == ov::element::i32 || type == ov::element::i64 || type == ov::element::u32 || type == ov::element::u64);
}

/// Guards the operands and the result of a node against integers that f32 would round, and against integer division by
/// zero.
void guard_size(ov::Node& node) {
  const Out result = node.output(0);
  const std::set<ov::Input<ov::Node>> readers = result.get_target_inputs();
  ov::OutputVector tensors{result};
  const bool is_reduction = ov::is_type<ov::op::util::ArithmeticReduction>(&node);
  const std::size_t terms = is_reduction ? 1 : node.get_input_size();
  for (std::size_t i = 0; i < terms; ++i) tensors.push_back(node.input_value(i));
  const bool divides = ov::is_type<ov::op::v1::Divide>(&node) || ov::is_type<ov::op::v1::Mod>(&node) ||
                       ov::is_type<ov::op::v1::FloorMod>(&node);
  const Out checked = guarded(tensors, {.node = describe(node), .divides = divides});
  for (ov::Input<ov::Node> reader : readers) reader.replace_source_output(checked);
}

/// Returns whether the tensor's values depend only on the shapes of the inputs, not on their values.
bool follows_from_shapes(const Out& tensor) {
  std::vector<const ov::Node*> rest{tensor.get_node()};
  std::set<const ov::Node*> seen;
  while (!rest.empty()) {
    const ov::Node* node = rest.back();
    rest.pop_back();
    if (!seen.insert(node).second || ov::is_type<ov::op::v0::ShapeOf>(node) || ov::is_type<ov::op::v3::ShapeOf>(node))
      continue;
    if (ov::is_type<ov::op::v0::Parameter>(node)) return false;
    for (std::size_t i = 0; i < node->get_input_size(); ++i) rest.push_back(node->get_input_node_ptr(i));
  }
  return true;
}

/// Throws Error for a recurrent node with sequence lengths and a dynamic shape, because OpenVINO's CPU plugin then
/// processes every sequence of a batch as if it had the length of the longest one. `source` is the model's file, for
/// the message.
void refuse_lengths(const ov::Node& node, const std::string& source) {
  std::size_t lengths = 2;
  if (ov::is_type<ov::op::v5::LSTMSequence>(&node)) {
    ++lengths;
  } else if (!ov::is_type<ov::op::v5::GRUSequence>(&node) && !ov::is_type<ov::op::v5::RNNSequence>(&node)) {
    return;
  }
  const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(node.get_input_node_shared_ptr(lengths));
  bool is_given = constant == nullptr && !follows_from_shapes(node.input_value(lengths));
  if (constant != nullptr) {
    const auto values = constant->cast_vector<std::int64_t>();
    is_given = std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) != values.end();
  }
  if (!is_given || node.get_input_partial_shape(0).is_static()) return;
  throw Error(fmt::format(
      "{}: {}: the CPU engine, OpenVINO 2026.4, ignores `sequence_lens` where the batch or the "
      "length of the sequences is dynamic, and computes each sequence as if it had the length of the longest "
      "one; set fixed shapes for the model's inputs",
      source, describe(node)));
}

/// Limits the negative steps of a Slice to -2^30, because OpenVINO's CPU plugin negates a step in 32 bits. No axis has
/// 2^30 elements, so the limited step selects the same elements.
void limit_step(ov::Node& slice) {
  constexpr std::int64_t smallest = -(std::int64_t{1} << 30);
  const Out step = slice.input_value(3);
  const ov::element::Type type = step.get_element_type();
  if (const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(step.get_node_shared_ptr())) {
    std::vector<std::int64_t> steps = constant->cast_vector<std::int64_t>();
    if (std::all_of(steps.begin(), steps.end(), [](std::int64_t each) { return each >= smallest; })) return;
    for (std::int64_t& each : steps) each = std::max(each, smallest);
    slice.input(3).replace_source_output(ov::op::v0::Constant::create(type, constant->get_shape(), steps));
    return;
  }
  slice.input(3).replace_source_output(std::make_shared<ov::op::v1::Maximum>(step, integer(type, smallest)));
}

/// Adds the guards to a model and to the bodies of its nodes. With `is_main`, the model is the main graph, and integer
/// sizes are checked too. `source` is the model's file, for messages.
void guard_in(ov::Model& model, const std::string& source, bool is_main) {
  for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) {
    refuse_lengths(*node, source);
    if (ov::is_type<ov::op::v8::Slice>(node)) limit_step(*node);
    if (const auto parent = ov::as_type_ptr<ov::op::util::MultiSubGraphOp>(node)) {
      for (const std::shared_ptr<ov::Model>& body : parent->get_functions()) guard_in(*body, source, false);
    }
    if (has_guarded_indices(*node)) {
      guard_index(*node);
    } else if (is_main && computes_integers_in_f32(*node)) {
      guard_size(*node);
    }
  }
}

}  // namespace

void refuse_known_faults(const onnx::Model& model) {
  model.graph().for_each_node([&](const onnx::Node& node) {
    const std::string fault = node.domain.empty() ? fault_of(node) : std::string();
    if (fault.empty()) return;
    throw Error(fmt::format("{}: {}: OpenVINO 2026.4 computes this node wrongly: {}; set {} to onnxruntime",
                            model.source, describe(node), fault, setting_name(Setting::cpu_engine)));
  });
}

void add_guards(ov::Model& model, const std::string& source) {
  guard_in(model, source, true);
  model.validate_nodes_and_infer_types();
}

}  // namespace graft::runtime
