// Inlines function calls, and finds the outputs of a graph.
#include "import/tensorflow/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "graft/error.hpp"
#include "tensorflow/graph_def.pb.h"

namespace graft::tensorflow {
namespace {

constexpr int deepest_calls = 24;
constexpr std::size_t bytes_of_call = 64;

/// The output names of each operator that has outputs of several names. Inside a function a tensor is called
/// "node:name:index", and this table contains the index of each name. Operators that are not in the table have a single
/// name for all outputs.
struct OutputNames {
  std::string_view op;
  std::array<std::string_view, 6> names;
};
constexpr std::array output_names = {
    OutputNames{"FusedBatchNorm", {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", ""}},
    OutputNames{"FusedBatchNormV2", {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", ""}},
    OutputNames{"FusedBatchNormV3",
                {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"}},
    OutputNames{"TopKV2", {"values", "indices", "", "", "", ""}},
    OutputNames{"TopK", {"values", "indices", "", "", "", ""}},
    OutputNames{"Switch", {"output_false", "output_true", "", "", "", ""}},
    OutputNames{"Merge", {"output", "value_index", "", "", "", ""}},
    OutputNames{"Unique", {"y", "idx", "", "", "", ""}},
    OutputNames{"UniqueWithCounts", {"y", "idx", "count", "", "", ""}},
    OutputNames{"CombinedNonMaxSuppression",
                {"nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections", "", ""}},
    OutputNames{"QuantizeV2", {"output", "output_min", "output_max", "", "", ""}},
    OutputNames{"TensorArrayV3", {"handle", "flow", "", "", "", ""}},
    OutputNames{"NonMaxSuppressionV4", {"selected_indices", "valid_outputs", "", "", "", ""}},
    OutputNames{"NonMaxSuppressionV5", {"selected_indices", "selected_scores", "valid_outputs", "", "", ""}},
    OutputNames{"MaxPoolWithArgmax", {"output", "argmax", "", "", "", ""}},
    OutputNames{"_FusedBatchNormEx",
                {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"}},
};

std::int64_t number_of(std::string_view text, const std::string& whole) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    throw Error(
        fmt::format("'{}' is not the name of a tensor; write NODE or NODE:INDEX, as in conv1 or split:1", whole));
  }
  return number;
}

bool is_call(const NodeDef& node, const std::unordered_map<std::string, const FunctionDef*>& functions) {
  return node.op() == "PartitionedCall" || node.op() == "StatefulPartitionedCall" || functions.contains(node.op());
}

class Inliner {
 public:
  Inliner(const FunctionDefLibrary& library, std::size_t& room) : room_(room) {
    for (const FunctionDef& function : library.function()) {
      functions_.emplace(function.signature().name(), &function);
    }
  }

  void run(GraphDef& graph) {
    google::protobuf::RepeatedPtrField<NodeDef> nodes;
    nodes.Swap(graph.mutable_node());
    for (NodeDef& node : nodes) place(std::move(node), {}, 0);
    for (NodeDef& node : result_) {
      for (std::string& input : *node.mutable_input()) input = resolve(input);
    }
    graph.mutable_node()->Swap(&result_);
  }

  /// Returns the name of a tensor after the function calls were inlined. `input` is the name in the original graph.
  std::string resolve(const std::string& input) const {
    if (is_control(input)) return input;
    std::string current = input;
    for (int hops = 0;; ++hops) {
      const auto found = renamed_.find(to_string(parse_tensor_name(current)));
      if (found == renamed_.end()) return current;
      if (hops > deepest_calls * 4)
        throw Error(fmt::format(
            "the tensor '{}' is computed from itself: functions of the file return each other's results; export the "
            "model again",
            input));
      current = found->second;
    }
  }

 private:
  using Attributes = google::protobuf::Map<std::string, AttrValue>;

  void place(NodeDef node, const std::vector<std::string>& calls, int depth) {
    if (!is_call(node, functions_)) {
      *result_.Add() = std::move(node);
      return;
    }
    if (depth >= deepest_calls) {
      throw Error(
          fmt::format("node '{}': function calls are nested deeper than {} levels", node.name(), deepest_calls));
    }
    const bool is_named = !functions_.contains(node.op());
    if (is_named && !node.attr().contains("f")) {
      throw Error(fmt::format("node '{}' ({}) has no attribute `f`, which names the function that the node calls",
                              node.name(), node.op()));
    }
    const std::string name = is_named ? node.attr().at("f").func().name() : node.op();
    const auto found = functions_.find(name);
    if (found == functions_.end()) {
      throw Error(fmt::format("node '{}' ({}) calls the function '{}', which is not in the file", node.name(),
                              node.op(), name));
    }
    if (std::find(calls.begin(), calls.end(), name) != calls.end()) {
      throw Error(fmt::format("node '{}' ({}): the function '{}' calls itself", node.name(), node.op(), name));
    }
    const FunctionDef& function = *found->second;
    const Attributes& given = is_named ? node.attr().at("f").func().attr() : node.attr();
    std::vector<std::string> inner_calls = calls;
    inner_calls.push_back(name);

    std::map<std::string, std::string> arguments;  // maps the name of an argument to a tensor
    std::vector<std::string> inputs;
    for (const std::string& input : node.input()) {
      if (!is_control(input)) inputs.push_back(input);
    }
    if (static_cast<int>(inputs.size()) != function.signature().input_arg_size()) {
      throw Error(
          fmt::format("node '{}' ({}) has {} inputs, but the function '{}' that the node calls has {} parameters",
                      node.name(), node.op(), inputs.size(), name, function.signature().input_arg_size()));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      arguments.emplace(function.signature().input_arg(static_cast<int>(i)).name(), inputs[i]);
    }
    std::unordered_map<std::string, const NodeDef*> body;
    // Functions that each call another function twice expand exponentially, in the number of nodes and in the length of
    // names.
    const std::size_t bytes = function.ByteSizeLong() + bytes_of_call +
                              static_cast<std::size_t>(function.node_def_size()) * node.name().size();
    if (bytes > room_) {
      throw Error(
          fmt::format("node '{}' ({}): the graph becomes many times larger than the file when its functions are "
                      "inlined, which Graft does not support",
                      node.name(), node.op()));
    }
    room_ -= bytes;
    for (const NodeDef& inner : function.node_def()) body.emplace(inner.name(), &inner);
    const auto outer_name = [&](const std::string& text) {
      return function_tensor(text, node.name(), arguments, body, name);
    };
    for (const NodeDef& inner : function.node_def()) {
      NodeDef copy = inner;
      copy.set_name(node.name() + "/" + inner.name());
      copy.clear_input();
      for (const std::string& input : inner.input()) {
        if (!is_control(input)) copy.add_input(outer_name(input));
      }
      for (auto& [key, value] : *copy.mutable_attr()) {
        if (value.value_case() != AttrValue::kPlaceholder) continue;
        const auto actual = given.find(value.placeholder());
        if (actual != given.end()) value = actual->second;
      }
      place(std::move(copy), inner_calls, depth + 1);
    }
    for (int i = 0; i < function.signature().output_arg_size(); ++i) {
      const auto returned = function.ret().find(function.signature().output_arg(i).name());
      if (returned == function.ret().end()) {
        throw Error(fmt::format("the function '{}' does not define its output '{}'", name,
                                function.signature().output_arg(i).name()));
      }
      renamed_.emplace(to_string(TensorName{node.name(), i}), outer_name(returned->second));
    }
  }

  /// Converts "argument" or "node:port:index" in a function's body to the name of a tensor in the graph, in which the
  /// nodes of the body have the prefix `call`/.
  std::string function_tensor(const std::string& text, const std::string& call,
                              const std::map<std::string, std::string>& arguments,
                              const std::unordered_map<std::string, const NodeDef*>& body,
                              const std::string& function) const {
    const auto argument = arguments.find(text);
    if (argument != arguments.end()) return argument->second;
    const auto first = text.find(':');
    const std::string node = text.substr(0, first);
    const auto found = body.find(node);
    if (found == body.end()) {
      throw Error(fmt::format("the function '{}' reads '{}', which it does not define", function, text));
    }
    std::int64_t index = 0;
    if (first != std::string::npos) {
      const auto second = text.find(':', first + 1);
      const std::string port = second == std::string::npos ? "" : text.substr(first + 1, second - first - 1);
      index = number_of(std::string_view(text).substr((second == std::string::npos ? first : second) + 1), text);
      if (!port.empty()) index += port_offset(*found->second, port, function);
    }
    return to_string(TensorName{call + "/" + node, index});
  }

  /// Returns the index of the first output of the node that belongs to the output name `port`. Returns 0 for operators
  /// that are not in the table; an unknown operator is reported later, if a result needs it. `function` is the name of
  /// the enclosing function for messages.
  std::int64_t port_offset(const NodeDef& node, const std::string& port, const std::string& function) const {
    std::vector<std::string_view> names;
    if (const auto called = functions_.find(node.op()); called != functions_.end()) {
      for (const auto& output : called->second->signature().output_arg()) names.emplace_back(output.name());
    }
    for (const OutputNames& operation : output_names) {
      if (operation.op == node.op()) names.assign(operation.names.begin(), operation.names.end());
    }
    if (names.empty()) return 0;
    const auto at = std::find(names.begin(), names.end(), port);
    if (at == names.end()) {
      throw Error(
          fmt::format("the function '{}' reads the output '{}' of node '{}' ({}), which does not have this output",
                      function, port, node.name(), node.op()));
    }
    return at - names.begin();
  }

  std::size_t& room_;  // bytes
  std::unordered_map<std::string, const FunctionDef*> functions_;
  google::protobuf::RepeatedPtrField<NodeDef> result_;
  std::unordered_map<std::string, std::string> renamed_;
};

}  // namespace

TensorName parse_tensor_name(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return {text, 0};
  return {text.substr(0, colon), number_of(std::string_view(text).substr(colon + 1), text)};
}

std::string to_string(const TensorName& name) {
  return name.output == 0 ? name.node : fmt::format("{}:{}", name.node, name.output);
}

void inline_calls(GraphDef& graph, const FunctionDefLibrary& library, std::size_t& room) {
  Inliner(library, room).run(graph);
}

std::vector<TensorName> data_inputs(const NodeDef& node) {
  std::vector<TensorName> result;
  for (const std::string& input : node.input()) {
    if (!is_control(input)) result.push_back(parse_tensor_name(input));
  }
  return result;
}

std::vector<TensorName> outputs_of(const GraphDef& graph) {
  std::unordered_set<std::string> read;
  for (const NodeDef& node : graph.node()) {
    for (const TensorName& input : data_inputs(node)) read.insert(input.node);
  }
  constexpr std::array<std::string_view, 8> no_results = {
      "Const", "NoOp", "Placeholder", "Assert", "SaveV2", "PlaceholderV2", "PlaceholderWithDefault", "Print"};
  std::vector<TensorName> result;
  for (const NodeDef& node : graph.node()) {
    const bool gives = std::find(no_results.begin(), no_results.end(), node.op()) == no_results.end();
    if (gives && !read.contains(node.name())) result.push_back({node.name(), 0});
  }
  return result;
}

}  // namespace graft::tensorflow
