// Forms that depend on the graph around a node. The facts were measured in TensorRT-RTX 1.4 to 1.7.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "inspect/model_parts.hpp"
#include "inspect/tensorrt_forms.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/schema.hpp"
#include "onnx/text.hpp"
#include "passes/lowering/refused_forms.hpp"
#include "passes/lowering/surroundings.hpp"

namespace graft::inspect {
namespace {

using onnx::ElementType;
using onnx::Node;
using onnx::Value;

using passes::Condition;
using passes::find_body_before_resize;
using passes::find_condition;
using passes::find_data_of_size;
using passes::find_if_around;
using passes::find_loop;
using passes::find_owner;
using passes::has_constant_condition;
using passes::has_dynamic_sizes;
using passes::is_folded_into_sizes;
using passes::is_imported_as_i32;
using passes::reads_dimensions;
using passes::Search;
using passes::search_back;
using passes::search_limit;
using passes::size_inputs;
using passes::Step;

bool is_in_body(const onnx::Graph& graph) { return graph.parent() != nullptr; }

bool is_loop(const Node& node) { return onnx::is_any_of(node, {"Loop", "Scan"}); }

constexpr std::string_view cast_u8 = "cast to i32 or f32 before the node, and to u8 only for an output of the network";
constexpr std::string_view keep_the_shape =
    "let the tensor have its largest shape from the first step on, and write into a part of it in each step";

constexpr std::size_t largest_rank = 8;  ///< Dims::MAX_DIMS of TensorRT.

constexpr std::string_view undecided_condition =
    "its condition reads dynamic dimensions, or more values than Graft follows; TensorRT accepts that only where the "
    "sizes decide the condition";

bool is_u8(const Value* value) { return value != nullptr && value->type == ElementType::u8; }

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` for each u8 output that TensorRT does not
/// accept. TensorRT accepts u8 only between an input of the network and a Cast, and between a Cast and an output of the
/// network.
void add_u8(const Node& node, Forms& forms) {
  for (const Value* output : node.outputs) {
    if (!is_u8(output)) continue;
    const bool is_i32 = is_imported_as_i32(*output);
    const auto& outputs = output->graph->outputs();
    const bool is_returned = std::find(outputs.begin(), outputs.end(), output) != outputs.end();
    if (node.is("ConstantOfShape")) {
      forms.push_back(
          {"constant_of_shape_u8", "its value is u8, which TensorRT's ConstantOfShape does not support", cast_u8});
    } else if (is_i32 && is_returned && !node.is("Constant") && !is_in_body(*output->graph)) {
      forms.push_back({"u8_from_constant_returned",
                       fmt::format("'{}' is computed from constants of u8, which TensorRT imports as i32, and is an "
                                   "output of the network: TensorRT cannot return i32 as u8",
                                   output->name),
                       cast_u8});
    } else if (!is_i32 && (!is_returned || is_in_body(*output->graph))) {
      forms.push_back(
          {"u8_intermediate",
           fmt::format("'{}' is u8 inside the network; TensorRT accepts u8 only as an input or output of the "
                       "network, next to a Cast",
                       output->name),
           cast_u8});
    }
  }
  if (!is_in_body(*node.graph)) return;
  for (const Value* input : node.inputs) {
    if (!is_u8(input) || !input->is_input || is_in_body(*input->graph)) continue;
    forms.push_back({"u8_intermediate",
                     fmt::format("it reads '{}', an input of the network in u8, inside a body; "
                                 "TensorRT accepts u8 only next to a Cast outside of bodies",
                                 input->name),
                     cast_u8});
  }
}

/// Returns the special form (see forms_of()) of a node whose output has a size that TensorRT cannot compute. `size` is
/// the input of the node that determines the size, and `source` the value from which `size` is computed.
Form form_of_size(const Value& size, const Value& source) {
  if (const Node* loop = find_loop(source)) {
    return {"size_from_step",
            fmt::format("'{}', which decides the size of its output, is computed from '{}', which the body of {} "
                        "receives in each step; TensorRT computes sizes in a body from shapes and from inputs of the "
                        "network",
                        size.name, source.name, onnx::describe(*loop)),
            "select elements with Gather, whose indices may change from step to step; or compute with the largest size "
            "and a mask"};
  }
  if (source.producer == nullptr) {
    return {"size_from_data",
            fmt::format("'{}', which decides the size of its output, is computed from '{}', an input of the "
                        "network in {}; TensorRT computes sizes from shapes, and from inputs in i32 and i64",
                        size.name, source.name, to_string(*source.type)),
            "make the size a constant; or change the input of the network to i64"};
  }
  constexpr std::string_view advice = "compute the size without If, for example with Where";
  if (find_condition(*source.producer) == Condition::undecided) {
    return {"size_from_if_undecided",
            fmt::format("'{}', which decides the size of its output, is computed from '{}', a result of If, and {}",
                        size.name, source.name, undecided_condition),
            advice};
  }
  return {"size_from_if",
          fmt::format("'{}', which decides the size of its output, is computed from '{}', a result of If; "
                      "TensorRT computes no sizes from such results",
                      size.name, source.name),
          advice};
}

/// Returns an input of a Loop or Scan body, received in each step, from which an ArgMax, ArgMin or TopK computes an
/// index that `size` depends on, or null. TensorRT computes sizes from indices of all other tensors.
const Value* find_step_of_index(const Value& size) {
  std::vector<const Value*> indices;
  static_cast<void>(search_back(&size, [&](const Value& value) {
    if (value.producer == nullptr) return Step::stop;
    if (onnx::is_any_of(*value.producer, {"ArgMax", "ArgMin", "TopK"})) indices.push_back(&value);
    return is_folded_into_sizes(*value.producer) ? Step::into_inputs : Step::stop;
  }));
  for (const Value* index : indices) {
    const Search search = search_back(index->producer->input(0), [](const Value& value) {
      if (find_loop(value) != nullptr) return Step::found;
      const bool is_computed = value.producer != nullptr && !reads_dimensions(*value.producer);
      return is_computed && is_in_body(*value.graph) ? Step::into_inputs : Step::stop;
    });
    if (search.found != nullptr) return search.found;
  }
  return nullptr;
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` if the size of a node's output is computed
/// from data. TensorRT computes sizes only from shapes and from integer inputs of the network.
void add_sizes(const Node& node, Forms& forms) {
  for (const std::size_t index : size_inputs(node)) {
    const Value* size = node.input(index);
    if (size == nullptr || size->constant()) continue;
    const Search search = find_data_of_size(*size);
    if (search.found != nullptr) {
      forms.push_back(form_of_size(*size, *search.found));
      return;
    }
    if (const Value* source = find_step_of_index(*size)) {
      forms.push_back(form_of_size(*size, *source));
      return;
    }
    if (search.reached_limit) {
      forms.push_back({"size_not_followed", fmt::format("'{}', which decides the size of its output, is computed from "
                                                        "more than {} values",
                                                        size->name, search_limit)});
      return;
    }
  }
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` if the axes of a node are not constant and
/// TensorRT's parser cannot compute them. From which values it can compute axes depends on the operator.
void add_axes(const Node& node, Forms& forms) {
  const Value* axes = node.input(1);
  if (axes == nullptr || axes->producer == nullptr || axes->constant()) return;
  if (onnx::is_any_of(node, {"Squeeze", "Unsqueeze"})) {
    const Search search = search_back(axes, [](const Value& value) {
      if (value.is_input && !value.initializer) return Step::found;
      if (value.producer == nullptr) return Step::stop;
      if (reads_dimensions(*value.producer)) {
        return has_dynamic_sizes(value.producer->input(0)) ? Step::found : Step::stop;
      }
      return is_folded_into_sizes(*value.producer) || value.producer->is("Range") ? Step::into_inputs : Step::stop;
    });
    if (search.found == nullptr) return;
    forms.push_back(
        {"squeeze_axes", fmt::format("its axes '{}' are computed from '{}'; TensorRT accepts only a constant",
                                     axes->name, search.found->name)});
  } else if (has_trait(node, onnx::trait::reduction)) {
    const Value* source = axes;
    while (source->producer != nullptr && onnx::is_any_of(*source->producer, {"Cast", "Identity"}) &&
           source->producer->input(0) != nullptr) {
      source = source->producer->input(0);
    }
    const bool is_constant = source->constant().has_value();
    forms.push_back(
        is_constant
            ? Form{"reduce_axes_cast",
                   fmt::format("its axes '{}' are a Cast of a constant; TensorRT accepts only the constant itself",
                               axes->name)}
            : Form{"reduce_axes", fmt::format("its axes '{}' are computed by {}; TensorRT accepts only a constant",
                                              axes->name, onnx::describe(*axes->producer))});
  }
}

/// Returns whether `now` differs from `then` for all values of the symbols, as "(time + 1)" does from "time".
bool is_another_size(const Dim& then, const Dim& now) {
  if (then.is_constant() || now.is_constant()) {
    return then.is_constant() && now.is_constant() && then.value() != now.value();
  }
  constexpr auto samples = std::to_array<std::array<std::int64_t, 4>>({{3, 8, 21, 5}, {40, 9, 2, 7}, {6, 6, 6, 6}});
  for (const auto& sample : samples) {
    std::map<std::string, std::int64_t, std::less<>> sizes;
    const auto now_size = now.evaluate([&](const std::string& name) {
      return std::optional(sizes.emplace(name, sample[sizes.size() % sample.size()]).first->second);
    });
    const auto then_size = then.evaluate([&](const std::string& name) {
      const auto found = sizes.find(name);
      return found == sizes.end() ? std::nullopt : std::optional(found->second);
    });
    if (!then_size || !now_size || *then_size == *now_size) return false;
  }
  return true;
}

/// Returns whether `returned`, an output of a Loop's body, is a Concat of the loop variable `received` with other
/// tensors that are not empty, so that the variable grows in each step.
bool is_longer(const Value* received, const Value* returned) {
  const Node* concat = returned == nullptr ? nullptr : returned->producer;
  if (received == nullptr || concat == nullptr || !concat->is("Concat") || concat->inputs.size() < 2) return false;
  const auto may_be_empty = [](const Value* value) {
    return value == nullptr || !value->shape ||
           std::any_of(value->shape->begin(), value->shape->end(),
                       [](const Dim& d) { return !d.is_constant() || d.value() == 0; });
  };
  const bool has_received = std::find(concat->inputs.begin(), concat->inputs.end(), received) != concat->inputs.end();
  const auto more = std::count_if(concat->inputs.begin(), concat->inputs.end(),
                                  [&](const Value* value) { return value == received || !may_be_empty(value); });
  return has_received && more > 1;
}

/// Returns a sentence if a loop variable changes its shape from step to step, or nothing if the shape stays the same or
/// is unknown. `before` is the initial value, `received` the input of the body, and `returned` its output.
std::optional<std::string> changed_shape(const Value* before, const Value* received, const Value* returned) {
  if (is_longer(received, returned)) {
    return fmt::format("its body returns '{}', a Concat of '{}' and other tensors", returned->name, received->name);
  }
  if (returned == nullptr || !returned->shape) return std::nullopt;
  for (const Value* each : {before, received}) {
    if (each == nullptr || !each->shape) continue;
    if (each->shape->size() != returned->shape->size()) {
      return fmt::format("its body returns '{}' with rank {} for '{}' with rank {}", returned->name,
                         returned->shape->size(), each->name, each->shape->size());
    }
    for (std::size_t axis = 0; axis < each->shape->size(); ++axis) {
      if (!is_another_size((*each->shape)[axis], (*returned->shape)[axis])) continue;
      return fmt::format("its body returns '{}' as {} for '{}', which is {}", returned->name,
                         onnx::type_text(*returned), each->name, onnx::type_text(*each));
    }
  }
  return std::nullopt;
}

void add_carried(const Node& node, std::size_t first_input, std::size_t first_received, std::size_t first_returned,
                 std::size_t count, Forms& forms) {
  const onnx::Graph& body = *node.subgraphs().front();
  for (std::size_t i = 0; i < count; ++i) {
    if (first_received + i >= body.inputs().size() || first_returned + i >= body.outputs().size()) return;
    const auto changed = changed_shape(node.input(first_input + i), body.inputs()[first_received + i],
                                       body.outputs()[first_returned + i]);
    if (!changed) continue;
    forms.push_back({"carried_shape_changes",
                     *changed + "; TensorRT accepts only tensors that keep their shape from step to step",
                     keep_the_shape});
    return;
  }
}

void add_loop(const Node& node, Forms& forms) {
  const std::vector<onnx::Graph*> bodies = node.subgraphs();
  if (bodies.size() != 1) return;
  const std::vector<Value*>& received = bodies.front()->inputs();
  if (node.input(1) == nullptr && received.size() > 1 && !received[1]->is_unused()) {
    forms.push_back(
        {"loop_condition_missing",
         fmt::format("it has no condition input, but its body reads the condition '{}'; TensorRT has no tensor for it",
                     received[1]->name),
         "add a condition: a bool constant that is true"});
  }
  if (node.input(0) == nullptr && node.input(1) == nullptr) {
    forms.push_back({"loop_without_limit", "it has neither a number of steps nor a condition",
                     "add a condition, or a maximum number of steps"});
  }
  if (node.inputs.size() > 2) add_carried(node, 2, 2, 1, node.inputs.size() - 2, forms);
}

void add_scan(const Node& node, Forms& forms) {
  if (node.graph->opset() < 9 || node.subgraphs().size() != 1) return;
  const auto scanned = static_cast<std::size_t>(std::max<std::int64_t>(node.int_or("num_scan_inputs", 0), 0));
  if (scanned >= node.inputs.size()) {
    forms.push_back({"scan_without_state", "it has no state variable; TensorRT requires at least one",
                     "add a state variable that its body returns unchanged"});
    return;
  }
  add_carried(node, 0, 0, 0, node.inputs.size() - scanned, forms);
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` if an If, Loop or Scan in the body of a Loop
/// or Scan reads nothing that changes from step to step, so that it computes the same in each step.
void add_same_in_each_step(const Node& node, Forms& forms) {
  if (node.subgraphs().empty() || !is_in_body(*node.graph)) return;
  // Only with a constant itself as the condition does TensorRT's parser leave the If out.
  if (node.is("If") && node.input(0) != nullptr && node.input(0)->constant()) return;
  const Node* owner = find_owner(*node.graph);
  if (owner == nullptr || !is_loop(*owner)) return;
  const std::vector<Value*>& received = node.graph->inputs();
  const auto is_of_step = [&](const Value& value) {
    // A condition that is always true is no matter of the step.
    const bool is_condition = owner->is("Loop") && received.size() > 1 && &value == received[1];
    return value.is_input && (!is_condition || (owner->input(1) != nullptr && !owner->input(1)->constant()));
  };
  std::vector<const Node*> waiting = {&node};
  std::unordered_set<const Node*> seen = {&node};
  bool reads_step = false;
  while (!waiting.empty() && !reads_step) {
    const Node& reader = *waiting.back();
    waiting.pop_back();
    for_each_read(reader, *node.graph, [&](const Value& value) {
      reads_step = reads_step || is_of_step(value);
      if (value.producer != nullptr && seen.insert(value.producer).second) waiting.push_back(value.producer);
    });
  }
  if (reads_step) return;
  forms.push_back(
      {"body_same_in_each_step",
       fmt::format("it is in the body of {} and reads nothing that changes from step to step", onnx::describe(*owner)),
       "compute the node before the loop"});
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` if the branches of an If return tensors of
/// different ranks.
void add_branches(const Node& node, Forms& forms) {
  const std::vector<onnx::Graph*> branches = node.subgraphs();
  const Condition condition = find_condition(node);
  if (branches.size() != 2 || condition == Condition::constant) return;
  const std::vector<Value*>& first = branches[0]->outputs();
  const std::vector<Value*>& second = branches[1]->outputs();
  for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    if (!first[i]->shape || !second[i]->shape || first[i]->shape->size() == second[i]->shape->size()) continue;
    const std::string ranks = fmt::format("its branches return '{}' with rank {} and '{}' with rank {}", first[i]->name,
                                          first[i]->shape->size(), second[i]->name, second[i]->shape->size());
    constexpr std::string_view advice = "let both branches return the same rank, with Unsqueeze or Reshape";
    if (condition == Condition::undecided) {
      forms.push_back({"if_ranks_differ_undecided", fmt::format("{}, and {}", ranks, undecided_condition), advice});
    } else {
      forms.push_back({"if_ranks_differ", ranks + "; TensorRT requires equal ranks", advice});
    }
    return;
  }
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` if an If with dynamic tensors is in a branch
/// of another If, and no Loop or Scan is around it (find_if_around).
void add_nested_if(const Node& node, Forms& forms) {
  const Node* outer = find_if_around(node);
  if (outer == nullptr) return;
  forms.push_back(
      {"nested_if_dynamic",
       fmt::format("it is in a branch of {}, and computes tensors with dynamic dimensions", onnx::describe(*outer)), "",
       true});
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` if a cubic Resize of dynamic height or width
/// reads a result of an If, Loop or Scan, directly or through other nodes.
void add_resize_after_body(const Node& node, Forms& forms) {
  const Node* before = find_body_before_resize(node);
  if (before == nullptr) return;
  forms.push_back(
      {"resize_cubic_after_body",
       fmt::format("it is a cubic Resize after {}, and its height or width is not fixed", onnx::describe(*before)), "",
       true});
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` if the rank of a node's input is lower than
/// TensorRT's layer accepts.
void add_low_rank(const Node& node, Forms& forms) {
  constexpr std::int64_t since_axis_alone = 13;  // Before, Softmax took its input as a matrix.
  const Value* input = node.input(0);
  if (!node.domain.empty() || input == nullptr || !input->shape) return;
  const bool is_softmax = onnx::is_any_of(node, {"Softmax", "LogSoftmax", "Hardmax"});
  std::size_t least = 0;
  if (onnx::is_any_of(node, {"ArgMax", "ArgMin"}) || (is_softmax && node.graph->opset() >= since_axis_alone)) least = 2;
  if (has_trait(node, onnx::trait::reduction) || node.is("CumSum")) least = 1;
  if (node.is("LRN")) least = 4;
  if (input->shape->size() >= least) return;
  forms.push_back({"rank_too_low",
                   fmt::format("'{}' has rank {}; TensorRT's {} requires at least rank {}", input->name,
                               input->shape->size(), node.op_type, least),
                   "put an Unsqueeze before the node and a Squeeze after it"});
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` if an input or output of a node has more
/// than 8 dimensions, the maximum of TensorRT's Dims.
void add_high_rank(const Node& node, Forms& forms) {
  const Value* value = find_rank_above_limit(node);
  if (value == nullptr) return;
  forms.push_back({"rank_above_8",
                   fmt::format("'{}' has rank {}; a tensor in TensorRT has at most {} dimensions", value->name,
                               value->shape->size(), largest_rank),
                   "merge dimensions with Reshape before the node, so that at most 8 remain"});
}

/// Appends entries, reasons why TensorRT may refuse the node, to `forms` if a convolution or pool has more than three
/// spatial dimensions, or a combination of strides and dilations that TensorRT's layer does not support.
void add_convolution(const Node& node, Forms& forms) {
  constexpr std::size_t batch_and_channels = 2;
  constexpr std::size_t most_spatial = 3;
  const bool is_convolution = onnx::is_any_of(node, {"Conv", "ConvTranspose"});
  if (!is_convolution && !onnx::is_any_of(node, {"AveragePool", "MaxPool"})) return;
  const Value* input = node.input(0);
  if (input != nullptr && input->shape && input->shape->size() > batch_and_channels + most_spatial) {
    forms.push_back({"spatial_dimensions_above_3",
                     fmt::format("'{}' has {} spatial dimensions; TensorRT's {} has at most {}", input->name,
                                 input->shape->size() - batch_and_channels, node.op_type, most_spatial),
                     is_convolution ? "split its weights along one spatial axis, and add the results of the "
                                      "convolutions with 3 spatial dimensions"
                                    : "pool along at most 3 axes at a time, with the other axes merged by Reshape"});
  }
  const std::vector<std::int64_t> none;
  if (node.is("ConvTranspose") &&
      passes::is_strided_and_dilated(node.ints("strides").value_or(none), node.ints("dilations").value_or(none))) {
    forms.push_back(
        {"conv_transpose_strided_dilated",
         "a stride and a dilation are greater than 1, which TensorRT's ConvTranspose does not support together",
         "write the dilation into the weights, as zeros between their elements"});
  }
}

bool has_dynamic_axis(const Value* value, std::size_t axis) {
  return value != nullptr && value->shape && axis < value->shape->size() && !(*value->shape)[axis].is_constant();
}

/// Appends entries, reasons why TensorRT may refuse the node, to `forms` for dynamic sizes that TensorRT must know when
/// it parses the node.
void add_dynamic_sizes(const Node& node, Forms& forms) {
  if (node.is("ConvTranspose") && has_dynamic_axis(node.input(0), 1)) {
    forms.push_back({"conv_transpose_dynamic_channels",
                     "the number of channels of its input is dynamic; TensorRT's ConvTranspose requires a fixed number",
                     "declare the number of channels of the network's input"});
  }
  if (onnx::is_any_of(node, {"Conv", "ConvTranspose"})) {
    for (const Value* value : {node.input(1), node.input(2)}) {
      if (value == nullptr || !value->shape || !has_dynamic_sizes(value)) continue;
      forms.push_back(
          {"convolution_dynamic_weights",
           fmt::format("the shape of '{}' is dynamic; TensorRT accepts only weights and biases of fixed shapes",
                       value->name)});
      break;
    }
  }
  const Value* indices = node.is("GatherND") ? node.input(1) : nullptr;
  if (indices != nullptr && indices->shape && !indices->shape->empty() &&
      has_dynamic_axis(indices, indices->shape->size() - 1)) {
    forms.push_back({"gather_nd_dynamic_rank",
                     fmt::format("the last dimension of '{}' is dynamic, so that the rank of the output is unknown",
                                 indices->name)});
  }
  if (node.is("Squeeze") && node.input(1) == nullptr && !node.ints("axes") && node.input(0) != nullptr &&
      node.input(0)->shape && has_dynamic_sizes(node.input(0))) {
    forms.push_back({"squeeze_without_axes_dynamic",
                     "it has no axes, and the shape of its input is dynamic; TensorRT requires axes in this case"});
  }
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` if a Slice has no axes and fewer starts than
/// its input has dimensions. ONNX Runtime then slices the first dimensions; TensorRT refuses the node.
void add_slice(const Node& node, Forms& forms) {
  const Value* data = node.input(0);
  const Value* starts = node.input(1);
  if (node.input(3) != nullptr || data == nullptr || starts == nullptr || !data->shape || !starts->shape) return;
  if (starts->shape->size() != 1 || !starts->shape->front().is_constant()) return;
  const auto rank = static_cast<std::int64_t>(data->shape->size());
  if (starts->shape->front().value() == rank) return;
  forms.push_back({"slice_without_axes",
                   fmt::format("it has {} starts, no axes, and an input of rank {}; without axes, TensorRT requires "
                               "one start for each dimension",
                               starts->shape->front().value(), rank),
                   "add the input axes to the node"});
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` if frame_step, window or frame_length of an
/// STFT is not constant, because TensorRT's parser needs their values.
void add_stft(const Node& node, Forms& forms) {
  for (const std::size_t index : {1, 2, 3}) {
    const Value* value = node.input(index);
    if (value == nullptr || value->constant() || (value->producer == nullptr && value->initializer)) continue;
    forms.push_back(
        {"stft_computed",
         fmt::format("'{}' is not a constant; TensorRT requires constants for frame_step, window and frame_length",
                     value->name)});
    return;
  }
}

}  // namespace

const Value* find_rank_above_limit(const Node& node) {
  for (const std::vector<Value*>* values : {&node.inputs, &node.outputs}) {
    for (const Value* value : *values) {
      if (value != nullptr && value->shape && value->shape->size() > largest_rank) return value;
    }
  }
  return nullptr;
}

void add_surroundings(const Node& node, Forms& forms) {
  add_high_rank(node, forms);
  add_u8(node, forms);
  add_sizes(node, forms);
  add_axes(node, forms);
  if (node.is("Loop")) add_loop(node, forms);
  if (node.is("Scan")) add_scan(node, forms);
  if (node.is("If")) add_branches(node, forms);
  if (node.is("If")) add_nested_if(node, forms);
  add_same_in_each_step(node, forms);
  if (node.is("Resize")) add_resize_after_body(node, forms);
  add_low_rank(node, forms);
  add_convolution(node, forms);
  add_dynamic_sizes(node, forms);
  if (node.is("Slice")) add_slice(node, forms);
  if (node.is("STFT")) add_stft(node, forms);
  if (node.is("EyeLike") && node.input(0) != nullptr && node.input(0)->shape && has_dynamic_sizes(node.input(0))) {
    forms.push_back({"eye_like_dynamic", "the shape of its input is dynamic; TensorRT's EyeLike requires a fixed one",
                     "replace the node with a constant, or compare two Ranges with Equal"});
  }
  if ((node.op_type == "Attention" || node.op_type == "MultiHeadAttention") && is_in_body(*node.graph)) {
    forms.push_back({"attention_in_body",
                     "it is in the body of an If, Loop or Scan, in which TensorRT builds no "
                     "Attention"});
  }
}

}  // namespace graft::inspect
