// Inserts QuantizeLinear and DequantizeLinear as planned, and converts weights to 8 bits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "graft/error.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/opset.hpp"
#include "onnx/shape_inference.hpp"
#include "quant/calibrate/thresholds.hpp"
#include "quant/plan/fold_scales.hpp"
#include "quant/plan/int8_plan.hpp"
#include "quant/plan/typed.hpp"

namespace graft::quant {
namespace {

onnx::NodeAttribute float_attribute(float number) { return onnx::NodeAttribute(onnx::AttributeData(number)); }

/// A quantized tensor: the 8-bit tensor after QuantizeLinear, and the f32 tensor after DequantizeLinear.
struct QuantizedValue {
  onnx::Value* steps = nullptr;  ///< The tensor in 8 bits.
  onnx::Value* numbers = nullptr;
};

class Placing {
 public:
  Placing(const onnx::Model& prepared, const Int8Plan& plan, const Int8Scales& scales) : plan_(plan), scales_(scales) {
    result_.model = prepared.clone();
    for (onnx::Node* node : graph().nodes()) nodes_.emplace(key_of(*node), node);
  }

  Int8Model run() {
    // Nodes that write int8 are processed first. Afterwards each tensor either exists in both forms or must be
    // quantized.
    for (const Int8Node& planned : plan_.nodes) {
      if (planned.has_int8_form) split_output(*nodes_.at(planned.node.id));
    }
    for (const Int8Node& planned : plan_.nodes) place(planned, *nodes_.at(planned.node.id));
    graph().topological_sort();
    graph().remove_dead();
    remove_unused_functions(result_.model);
    infer_shapes(result_.model);
    attach_functions(result_.model);
    result_.quantized_tensors = rounded_.size();
    return std::move(result_);
  }

 private:
  [[nodiscard]] onnx::Graph& graph() { return result_.model.graph(); }

  [[nodiscard]] float scale_of_tensor(const std::string& name) const {
    const auto planned = plan_.tensors.find(name);
    const auto scale = planned == plan_.tensors.end() ? scales_.end() : scales_.find(planned->second);
    if (scale == scales_.end()) throw Error(Error::Kind::internal, fmt::format("no scale for '{}'", name));
    return scale->second;
  }

  onnx::Value* scale_constant(const std::string& name) {
    return graph().add_constant(name + "/scale",
                                onnx::TensorData::scalar_of(onnx::ElementType::f32, scale_of_tensor(name)));
  }

  /// Returns "/int8" or "/f8", the suffix of the names of 8-bit tensors.
  [[nodiscard]] std::string ending() const { return fmt::format("/{}", to_string(plan_.type)); }

  onnx::Value* zero_constant(const std::string& name) {
    return graph().add_constant(name + "/zero", onnx::TensorData::scalar_of(element_type_of(plan_.type), 0));
  }

  void set_scale(onnx::Node& node, const Port& port, const std::string& tensor) const {
    node.attributes.insert_or_assign(std::string(port.scale), float_attribute(scale_of_tensor(tensor)));
  }

  void place(const Int8Node& planned, onnx::Node& node) {
    if (planned.kind == Int8Kind::kept) node.metadata[std::string(precision_note)] = "f32: " + planned.reason;
    for (const std::size_t input : planned.inputs) {
      onnx::Value* x = node.inputs[input];
      const std::string name = x->name;
      const QuantizedValue& found = rounded(*x);
      graph().set_input(node, input, planned.has_int8_form ? found.steps : found.numbers);
      if (planned.has_int8_form) set_scale(node, find_operator_for(node).type->ports[input], name);
    }
    if (planned.inputs.empty() || !planned.has_weight()) return;
    if (planned.has_int8_form) {
      quantize_operator(node);
    } else {
      graph().set_input(node, 1, weight(*node.inputs[1], *planned.axis));
    }
  }

  const QuantizedValue& rounded(onnx::Value& x) {
    const auto found = rounded_.find(x.name);
    if (found != rounded_.end()) return found->second;
    onnx::Value* scale = scale_constant(x.name);
    onnx::Value* zero = zero_constant(x.name);
    onnx::Node* quantize = graph().add_node("QuantizeLinear", {&x, scale, zero}, {x.name + ending()});
    onnx::Node* back = graph().add_node("DequantizeLinear", {quantize->output(), scale, zero}, {x.name + "/rounded"});
    return rounded_.emplace(x.name, QuantizedValue{quantize->output(), back->output()}).first->second;
  }

  /// Replaces a Graft node by one with an int8 output, followed by a DequantizeLinear that computes the old output.
  void split_output(onnx::Node& node) {
    onnx::Value& y = *node.output();
    onnx::Node* own = graph().add_node(node.op_type, node.inputs, {y.name + ending()}, &node, node.domain);
    own->name = node.name;
    own->metadata = node.metadata;
    for (const auto& [name, attribute] : node.attributes) own->attributes.emplace(name, copy_attribute(attribute));
    const OperatorType& type = *find_operator_for(*own).type;
    set_scale(*own, type.ports[type.input_count()], y.name);
    onnx::Node* back = graph().add_node("DequantizeLinear",
                                        {own->output(), scale_constant(y.name), zero_constant(y.name)}, {""}, &node);
    graph().move_output(node, 0, *back, 0);
    graph().remove_node(node);
    nodes_[y.name] = own;
    rounded_.emplace(y.name, QuantizedValue{own->output(), &y});
  }

  onnx::Value* weight(onnx::Value& weight, std::size_t axis) {
    onnx::Value*& known = weights_[{weight.name, axis}];
    if (known != nullptr) return known;
    const QuantizedWeight quantized = quantize_weight(*weight.constant(), axis, plan_.type);
    onnx::Value* steps = graph().add_constant(weight.name + ending(), quantized.steps);
    onnx::Value* scale = graph().add_constant(weight.name + "/scale", onnx::TensorData::from_floats(quantized.scales));
    onnx::Node* back = graph().add_node("DequantizeLinear", {steps, scale}, {weight.name + "/rounded"});
    back->attributes.emplace("axis", onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(axis))));
    known = back->output();
    return known;
  }

  /// Quantizes the constant weights of a Graft operator, which are an input or an attribute, and sets their scales.
  void quantize_operator(onnx::Node& node) {
    const auto op = make_operator(node);
    const std::optional<Int8Weight>& stored = op->type().int8_weight;
    if (!stored) return;
    std::optional<QuantizedWeight> quantized;
    if (const onnx::Value* weight = node.input(stored->input); weight != nullptr) {
      quantized = quantize_weight(*weight->constant(), 0, plan_.type);
      graph().set_input(node, stored->input, graph().add_constant(weight->name + ending(), quantized->steps));
    } else {
      const auto numbers = std::get<std::vector<float>>(*op->get(stored->numbers));
      const std::int64_t channels = std::get<std::int64_t>(*op->get(stored->slices));
      onnx::TensorData weights = onnx::TensorData::from_floats(numbers);
      weights.dims = {channels, static_cast<std::int64_t>(numbers.size()) / channels};
      quantized = quantize_weight(weights, 0, plan_.type);
    }
    node.attributes.insert_or_assign(std::string(stored->scales),
                                     onnx::NodeAttribute(onnx::AttributeData(quantized->scales)));
  }

  const Int8Plan& plan_;
  const Int8Scales& scales_;
  Int8Model result_;
  std::map<std::string, onnx::Node*, std::less<>> nodes_;
  std::map<std::string, QuantizedValue, std::less<>> rounded_;
  std::map<std::pair<std::string, std::size_t>, onnx::Value*> weights_;
};

}  // namespace

QuantizedWeight quantize_weight(const onnx::TensorData& weight, std::size_t axis, EightBits type) {
  std::vector<double> numbers = *weight.numbers();
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < weight.dims.size(); ++i) inner *= static_cast<std::size_t>(weight.dims[i]);
  const auto channels = static_cast<std::size_t>(weight.dims[axis]);
  const auto channel_of = [&](std::size_t i) { return i / inner % channels; };
  std::vector<double> largest(channels, 0);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    largest[channel_of(i)] = std::max(largest[channel_of(i)], std::abs(numbers[i]));
  }
  QuantizedWeight quantized;
  for (const double most : largest) {
    const auto scale = scale_of(most, type);
    // A channel of zeros needs a positive scale too, because TensorRT refuses 0.
    quantized.scales.push_back(most == 0 ? 1.F : std::max(scale, std::numeric_limits<float>::min()));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = round_to(type, numbers[i] / static_cast<double>(quantized.scales[channel_of(i)]));
  }
  quantized.steps = onnx::TensorData::from_numbers(element_type_of(type), weight.dims, numbers);
  return quantized;
}

onnx::Model prepare_for_int8(const onnx::Model& model, EightBits type) {
  onnx::Model prepared = prepare_for_types(model, report::Precision::f16);
  if (type == EightBits::f8) {
    constexpr std::int64_t ir_of_f8 = 9;
    onnx::upgrade_opset(prepared, std::max(prepared.graph().opset(), onnx::f8_opset));
    prepared.ir_version = std::max(prepared.ir_version, ir_of_f8);
  }
  fold_scales(prepared);
  infer_shapes(prepared);
  return prepared;
}

Int8Model place_int8(const onnx::Model& prepared, const Int8Plan& plan, const Int8Scales& scales) {
  return Placing(prepared, plan, scales).run();
}

}  // namespace graft::quant
