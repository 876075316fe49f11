// Converts a planned scope node by node: constants, inputs, and nodes that select one of several tensors.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "import/tensorflow/scope.hpp"
#include "onnx/shape_inference.hpp"

namespace graft::tensorflow {
namespace {

/// Throws Error for an operator on complex numbers whose ONNX operator would compute something else, because complex
/// numbers are stored as pairs along an extra axis.
void refuse_complex(const NodeDef& node) {
  constexpr std::array<std::string_view, 7> allowed = {"Complex", "ComplexAbs", "Identity",    "Imag",
                                                       "Real",    "RFFT",       "StopGradient"};
  if (std::find(allowed.begin(), allowed.end(), node.op()) != allowed.end()) return;
  for (const auto& [name, value] : node.attr()) {
    constexpr std::array<std::string_view, 5> uses = {"T", "SrcT", "DstT", "Tparams", "dtype"};
    if (value.value_case() != AttrValue::kType || std::find(uses.begin(), uses.end(), name) == uses.end()) continue;
    const auto type = element_type(value.type());
    if (type == onnx::ElementType::complex64 || type == onnx::ElementType::complex128) {
      throw Error(
          fmt::format("node '{}' ({}): attribute `{}` is {}; Graft supports complex numbers only between RFFT and "
                      "ComplexAbs, Real or Imag",
                      node.name(), node.op(), name, data_type_name(value.type())));
    }
  }
}

/// Merge(a, b) of a branch becomes Where(condition, a, b). Throws Error if the shapes may differ, because Where would
/// broadcast them.
onnx::Value* chosen(NodeConverter& node) {
  const auto& a = node.input(1)->shape;
  const auto& b = node.input(2)->shape;
  if (!a || !b || *a != *b) {
    const auto text = [](const std::optional<Shape>& shape) { return shape ? to_string(*shape) : "unknown"; };
    node.fail(
        fmt::format("its two inputs have different shapes, or Graft cannot prove that they are equal ({} and {}), and "
                    "the condition is not constant; freeze the graph from TensorFlow 2 with "
                    "convert_variables_to_constants_v2(f, lower_control_flow=False), whose If is supported",
                    text(a), text(b)));
  }
  return node.add("Where", {node.input(0), node.input(1), node.input(2)});
}

}  // namespace

std::vector<onnx::Value*> Scope::convert(onnx::Graph& graph, const std::vector<onnx::Value*>& arguments,
                                         const std::map<TensorName, onnx::Value*>& captured) {
  if (order_.size() > reading_.room_for_conversions)
    throw Error("loops in the conditions of loops are nested too deeply; Graft does not support this");
  reading_.room_for_conversions -= order_.size();
  graph_ = &graph;
  argument_values_ = arguments;
  captured_values_ = captured;
  values_.clear();
  for (NodeDef* node : order_) {
    // Nodes in the bodies of loops and branches are counted with the enclosing graph, some of them more than once.
    if (reading_.options.progress) {
      reading_.options.progress(std::min(reading_.converted, reading_.needed.size()), reading_.needed.size());
    }
    ++reading_.converted;
    convert(*node);
  }
  std::vector<onnx::Value*> results;
  for (const TensorName& result : results_) results.push_back(try_value(result));
  return results;
}

onnx::Value* Scope::try_value(const TensorName& name) const {
  if (const auto at = arguments_.find(name); at != arguments_.end()) return argument_values_.at(at->second);
  const auto found = values_.find(name.node);
  const auto index = static_cast<std::size_t>(name.output);
  return found == values_.end() || index >= found->second.size() ? nullptr : found->second[index];
}

onnx::Value* Scope::captured(const TensorName& name) const {
  const auto found = captured_values_.find(name);
  return found == captured_values_.end() ? nullptr : found->second;
}

onnx::Value* Scope::value_of(const TensorName& name, const NodeDef& reader) const {
  if (onnx::Value* value = try_value(name)) return value;
  const NodeDef* node = node_of(name);
  const std::string op = node == nullptr ? "missing" : node->op();
  if (op.starts_with("TensorList") || op.starts_with("TensorArray") || op == "EmptyTensorList") {
    throw Error(
        fmt::format("node '{}' ({}) reads the list '{}' ({}), whose elements have no fixed shape; Graft supports such "
                    "a list only if a loop fills it from the first element to the last. Set the shapes of the inputs "
                    "with {}, or freeze the network with a fixed batch size",
                    reader.name(), reader.op(), name.node, op, setting_name(Setting::input_shapes)));
  }
  throw Error(fmt::format("node '{}' ({}) reads '{}'; Graft does not convert this output of '{}' ({})", reader.name(),
                          reader.op(), to_string(name), name.node, op));
}

bool Scope::reads_last(const NodeDef& node) const {
  const auto inputs = data_inputs(node);
  if (node.op() != "StridedSlice" || inputs.size() != 4) return false;
  const NodeDef* begin = node_of(source_of(inputs[1]));
  if (begin == nullptr || begin->op() != "Const" || !begin->attr().contains("value")) return false;
  const auto is_set = [&](const char* mask) {
    const auto found = node.attr().find(mask);
    return found != node.attr().end() && (found->second.i() & 1) != 0;
  };
  if (!is_set("shrink_axis_mask") || is_set("ellipsis_mask") || is_set("new_axis_mask")) return false;
  TensorProto copy = begin->attr().at("value").tensor();
  std::int64_t room = 0;  // a list of begins is never one number that stands for many
  const auto begins = read_constant(copy, reading_.pieces, room).tensor.ints();
  return begins && !begins->empty() && begins->front() == -1;
}

void Scope::find_uses() {
  const auto note = [&](const TensorName& name, Use use) {
    std::vector<Use>& uses = uses_[name.node];
    const auto output = static_cast<std::size_t>(name.output);
    if (uses.size() <= output) uses.resize(output + 1, Use::nothing);
    uses[output] = std::max(uses[output], use);
  };
  for (const auto& [node, names] : reads_) {
    for (std::size_t i = 0; i < names.size(); ++i)
      note(names[i], i == 0 && reads_last(*node) ? Use::last : Use::everything);
  }
  for (const TensorName& result : results_) note(result, Use::everything);
}

void Scope::convert(NodeDef& node) {
  const std::vector<TensorName>& names = reads_.at(&node);
  std::vector<onnx::Value*>& results = values_[node.name()];
  if (const auto item = items_.find(&node); item != items_.end()) {
    results = {value_of(names.at(item->second), node)};
    return;
  }
  const bool is_loop = loops_.contains(&node);
  // A list that a loop fills later has no value yet.
  const bool may_lack_inputs = is_loop || node.op() == "TensorArrayScatterV3";
  // A list that a loop fills has no value before the loop. Identities of such a list are skipped.
  if (is_identity(node) && names.size() == 1 && try_value(names[0]) == nullptr) return;
  std::vector<onnx::Value*> inputs;
  inputs.reserve(names.size());
  for (const TensorName& name : names) inputs.push_back(may_lack_inputs ? try_value(name) : value_of(name, node));
  refuse_complex(node);
  NodeConverter converter(node, *graph_, reading_.contents, reading_.constants, inputs);
  if (node.op().starts_with("BlockLSTM")) {
    if (uses_.empty()) find_uses();
    constexpr std::size_t outputs = 7;
    std::vector<Use>& uses = uses_[node.name()];
    uses.resize(std::max(uses.size(), outputs), Use::nothing);
    converter.set_uses(uses);
  }
  try {
    if (is_loop) {
      convert_loop(node, converter);
    } else if (branches_.contains(&node)) {
      convert_branches(node, converter);
    } else if (node.op() == "Const") {
      converter.give(constant(node, converter));
    } else if (node.op() == "Placeholder" || node.op() == "PlaceholderV2") {
      converter.give(placeholder(node, std::nullopt));
    } else if (node.op() == "PlaceholderWithDefault") {
      converter.give(with_default(node, converter));
    } else if (node.op() == "Switch") {
      converter.give(0, converter.input(0));
      converter.give(1, converter.input(0));
    } else if (node.op() == "Merge") {
      converter.give(inputs.size() == 3 ? chosen(converter) : converter.input(0));
    } else if (node.op() == "Exit") {
      converter.give(converter.input(0));
    } else if (node.op() == "Enter") {
      onnx::Value* value = captured(data_inputs(node).at(0));
      if (value != nullptr) converter.give(value);
    } else {
      find_converter(node.op())->convert(converter);
    }
    results = converter.results();
    note_origin(node, inputs, results);
  } catch (const Error& error) {
    const std::string text = error.what();
    if (error.kind() != Error::Kind::bad_input || text.starts_with("node '")) throw;
    converter.fail(text);
  }
}

void Scope::note_origin(const NodeDef& node, const std::vector<onnx::Value*>& inputs,
                        const std::vector<onnx::Value*>& results) {
  const bool copies = !inputs.empty() && !results.empty() && results[0] == inputs[0];
  if (copies) {
    std::string why = "it copies its input";
    if (node.op() == "Merge") why = "only one of the branches can run";
    if (node.op() == "PlaceholderWithDefault") {
      why = fmt::format("'{}' is replaced with its default value; {} {}:SHAPE turns it into an input", node.name(),
                        setting_name(Setting::input_shapes), node.name());
    }
    reading_.origin.leave_out(node.op(), why);
  } else if (!inputs.empty()) {
    ++reading_.origin.operators[node.op()];
  }
}

onnx::Value* Scope::constant(NodeDef& node, NodeConverter& converter) {
  const auto found = node.mutable_attr()->find("value");
  if (found == node.mutable_attr()->end() || !found->second.has_tensor())
    converter.fail("attribute `value`, the tensor, is missing");
  Constant read;
  if (depth_ == 0) {
    read = read_constant(*found->second.mutable_tensor(), reading_.pieces, reading_.constants.left);
  } else {  // A node may be converted twice: a loop's condition occurs before the loop and inside it.
    TensorProto copy = found->second.tensor();
    read = read_constant(copy, reading_.pieces, reading_.constants.left);
  }
  if (read.is_filled) {
    return converter.add("Expand", {converter.constant_of(std::move(read.tensor)), converter.ints_of(read.dims)});
  }
  return graph_->add_constant(node.name(), std::move(read.tensor));
}

/// Returns a symbol for the dynamic first size of an input: "batch" if it is the only input with such a size, otherwise
/// the name of the input and "_batch", because the sizes of several inputs may differ.
Dim Scope::batch_of(const NodeDef& node) const {
  const auto is_open = [&](const NodeDef* other) {
    if (!other->op().starts_with("Placeholder") || reading_.options.input_shapes.contains(other->name())) return false;
    const auto declared = other->attr().find("shape");
    return declared != other->attr().end() && declared->second.shape().dim_size() > 0 &&
           declared->second.shape().dim(0).size() < 0;
  };
  const bool is_only = std::count_if(order_.begin(), order_.end(), is_open) == 1;
  return Dim::symbol(is_only ? "batch" : node.name() + "_batch");
}

onnx::Value* Scope::placeholder(const NodeDef& node, const std::optional<Shape>& shape) {
  if (depth_ != 0)
    throw Error(
        "it is an input of the network inside a branch or loop; Graft reads inputs only outside of branches and loops");
  onnx::Value* value = graph_->add_input(node.name());
  const auto type = node.attr().find("dtype");
  if (type == node.attr().end()) throw Error("attribute `dtype`, the type of the input, is missing");
  value->type = element_type(type->second.type());
  if (!value->type) {
    throw Error(
        fmt::format("the input has the type {}, which Graft does not support", data_type_name(type->second.type())));
  }
  const auto given = reading_.options.input_shapes.find(node.name());
  const auto declared = node.attr().find("shape");
  if (given != reading_.options.input_shapes.end()) {
    value->shape = given->second;
  } else if (declared != node.attr().end() && !declared->second.shape().unknown_rank() &&
             declared->second.value_case() == AttrValue::kShape) {
    Shape dims;
    const int rank = declared->second.shape().dim_size();
    if (static_cast<std::size_t>(rank) > onnx::highest_rank) {
      throw Error(fmt::format("the input has {} dimensions; it may have at most {}", rank, onnx::highest_rank));
    }
    for (const auto& dim : declared->second.shape().dim()) {
      if (dim.size() >= 0) {
        dims.emplace_back(dim.size());
      } else {
        dims.push_back(dims.empty() ? batch_of(node) : onnx::unknown_dim());
      }
    }
    value->shape = std::move(dims);
  } else if (shape) {
    value->shape = *shape;
  }
  return value;
}

/// A scalar PlaceholderWithDefault (is_training, keep_prob) becomes its default unless the caller sets a shape for it;
/// any other one becomes an input.
onnx::Value* Scope::with_default(const NodeDef& node, NodeConverter& converter) {
  onnx::Value* otherwise = converter.input(0);
  const bool is_number = otherwise->shape && otherwise->shape->empty();
  if (is_number && !reading_.options.input_shapes.contains(node.name())) return otherwise;
  return placeholder(node, otherwise->shape);
}

}  // namespace graft::tensorflow
