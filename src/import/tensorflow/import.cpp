// Converts a GraphDef to a Model: recognizes the kind of file, finds the graph's outputs, and reports what cannot be
// read.
#include "import/tensorflow/import.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/guide_pages.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "import/messages.hpp"
#include "import/tensorflow/dropout.hpp"
#include "import/tensorflow/graph.hpp"
#include "import/tensorflow/scope.hpp"
#include "onnx/functions.hpp"
#include "onnx/mapped_file.hpp"
#include "onnx/opset.hpp"
#include "onnx/protobuf_log.hpp"
#include "onnx/shape_inference.hpp"
#include "onnx/wire.hpp"
#include "tensorflow/graph_def.pb.h"

namespace graft {
namespace tensorflow {
namespace {

bool is_variable(std::string_view op) {
  return op.starts_with("Variable") || op == "VarHandleOp" || op == "ReadVariableOp" || op.starts_with("Assign") ||
         op.starts_with("Resource");
}

constexpr std::string_view how_to_freeze =
    "\nThe graph has variables, whose values are not in the file. Freeze it: in TensorFlow 2 with "
    "convert_variables_to_constants_v2(f) of tensorflow.python.framework.convert_to_constants, in TensorFlow 1 with "
    "tf.compat.v1.graph_util.convert_variables_to_constants(session, graph_def, names of the outputs)";

std::string how_to_go_on() {
  return fmt::format(
      "\nSelect outputs that do not depend on these operators, or a tensor before them, with {}. "
      "{} lists replacements",
      setting_name(Setting::kept_outputs), guide_page("from_tensorflow"));
}

/// Returns the outputs of a graph for which the caller requested none: the tensors that no node reads. Exit nodes of
/// loops, outputs of a Switch and their copies, and copies of constants that only order nodes (control inputs) are
/// skipped, unless there are no other such tensors.
std::vector<TensorName> default_outputs(const GraphDef& graph, const NodeSet& nodes) {
  std::set<std::string> only_ordered;
  for (const NodeDef& node : graph.node()) {
    for (const std::string& input : node.input()) {
      if (is_control(input)) only_ordered.insert(input.substr(1));
    }
  }
  const auto is_for_order = [&](const NodeDef& node) {
    if (!is_identity(node)) return false;
    const auto inputs = data_inputs(node);
    const auto source = inputs.empty() ? nodes.by_name.end() : nodes.by_name.find(inputs[0].node);
    if (source == nodes.by_name.end()) return false;
    // If nothing in a branch depends on its side of the Switch, that output has no reader, not even a control input.
    return source->second->op() == "Switch" || (source->second->op() == "Const" && only_ordered.contains(node.name()));
  };
  const auto all = outputs_of(graph);
  std::vector<TensorName> chosen;
  for (const TensorName& output : all) {
    const NodeDef& node = *nodes.by_name.at(output.node);
    if (node.op() != "Exit" && node.op() != "Switch" && !is_for_order(node)) chosen.push_back(output);
  }
  return chosen.empty() ? all : chosen;
}

/// Throws Error with all unknown operators at once.
void check_known(const Reading& reading) {
  if (reading.unknown.empty()) return;
  std::string text;
  bool has_variables = false;
  for (const auto& [op, names] : reading.unknown) {
    constexpr std::size_t few = 3;
    const std::vector<std::string> first(names.begin(),
                                         names.begin() + static_cast<std::ptrdiff_t>(std::min(few, names.size())));
    text += fmt::format("\n  {} at {}{}", op, fmt::join(first, ", "),
                        names.size() > few ? fmt::format(" and {} more", names.size() - few) : "");
    if (const std::string reason = reason_against(op); !reason.empty()) text += fmt::format(": {}", reason);
    has_variables = has_variables || is_variable(op);
  }
  throw Error(fmt::format("the graph has operators that Graft does not support:{}{}", text,
                          has_variables ? std::string(how_to_freeze) : how_to_go_on()));
}

void add_output(onnx::Graph& graph, const TensorName& name, onnx::Value* value) {
  const std::string wanted = to_string(name);
  if (value->name != wanted || value->is_input || value->initializer || value->is_output()) {
    const bool is_free = graph.find_local(wanted) == nullptr;
    if (is_free && value->producer != nullptr && !value->is_output()) {
      graph.rename(*value, wanted);
    } else {
      value = graph.add_node("Identity", {value}, {wanted})->output();
    }
  }
  graph.add_output(*value);
}

onnx::Model build(GraphDef& proto, const onnx::Pieces& pieces, const std::string& source,
                  const TensorFlowOptions& options) {
  if (proto.node_size() == 0) {
    throw Error(
        "the graph has no node: the file is empty or contains another protobuf message; pass a frozen GraphDef");
  }
  Reading reading{.options = options, .library = proto.library(), .pieces = pieces};
  // Large files, and files with many nodes, get a larger limit.
  reading.room_for_calls += 3 * proto.ByteSizeLong();
  for (const FunctionDef& function : proto.library().function()) {
    reading.room_for_plans += 8 * static_cast<std::size_t>(function.node_def_size());
  }
  reading.room_for_plans += 8 * static_cast<std::size_t>(proto.node_size());
  reading.room_for_conversions += 2 * reading.room_for_plans;
  inline_calls(proto, proto.library(), reading.room_for_calls);
  const auto nodes = std::make_shared<NodeSet>(proto);
  std::vector<TensorName> outputs;
  for (const std::string& output : options.outputs) {
    outputs.push_back(parse_tensor_name(output));
    if (!nodes->by_name.contains(outputs.back().node)) {
      std::vector<std::string> names;
      for (const auto& entry : nodes->by_name) names.push_back(entry.first);
      throw Error(fmt::format("the requested output '{}' is not a node of the graph{}", output,
                              did_you_mean(outputs.back().node, std::move(names))));
    }
  }
  if (outputs.empty()) outputs = default_outputs(proto, *nodes);
  if (outputs.empty())
    throw Error(fmt::format("the graph has no node that Graft recognizes as an output; select the outputs with {}",
                            setting_name(Setting::kept_outputs)));
  // Dropout is removed after the outputs are chosen, so that a mask without a reader does not become an output.
  for (std::size_t left = remove_dropout(proto); left > 0; --left) {
    reading.origin.leave_out("dropout", "it is for training");
  }

  Scope scope(reading, nodes, {}, outputs, 0);
  scope.plan();
  check_known(reading);
  onnx::Model model;
  model.source = source;
  model.producer_name = "graft";
  model.main->name = "tensorflow";
  model.main->opset_imports[""] = onnx::working_opset;
  const auto values = scope.convert(model.graph(), {});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (values[i] == nullptr) {
      throw Error(
          fmt::format("the requested output '{}' cannot be computed, because Graft does not convert this output of the "
                      "operator {}; request another output",
                      to_string(outputs[i]), nodes->by_name.at(outputs[i].node)->op()));
    }
    add_output(model.graph(), outputs[i], values[i]);
  }
  for (const auto& [name, shape] : options.input_shapes) {
    const onnx::Value* value = model.graph().find_local(name);
    if (value == nullptr || !value->is_input) {
      throw Error(fmt::format("{}: the network has no input '{}'; {}", setting_name(Setting::input_shapes), name,
                              inputs_text(model.graph())));
    }
  }
  reading.origin.format = "TensorFlow graph";
  reading.origin.unit = "node";
  reading.origin.nodes = static_cast<std::size_t>(proto.node_size());
  for (const NodeDef& node : proto.node()) {
    if (!reading.needed.contains(&node) && node.op() != "Const") {
      reading.origin.leave_out(node.op(), "no output needs it");
    }
  }
  if (options.origin != nullptr) *options.origin = std::move(reading.origin);
  model.graph().remove_dead();
  attach_functions(model);
  infer_shapes(model);
  return model;
}

/// Numbers that stand for protobuf's message types in `wire_fields`, the table of the fields of a GraphDef that may
/// contain tensors, including those in functions and their attributes. 0 is the message of the whole file.
constexpr int graph_def = 0;
constexpr int node_def = 1;
constexpr int attribute_entry = 2;
constexpr int attribute_value = 3;
constexpr int tensor_proto = 4;
constexpr int function_call = 5;
constexpr int library = 6;
constexpr int function_def = 7;
constexpr std::array wire_fields = {onnx::WireField{graph_def, 1, node_def},
                                    onnx::WireField{graph_def, 2, library},
                                    onnx::WireField{library, 1, function_def},
                                    onnx::WireField{function_def, 3, node_def},
                                    onnx::WireField{node_def, 5, attribute_entry},
                                    onnx::WireField{attribute_entry, 2, attribute_value},
                                    onnx::WireField{attribute_value, 8, tensor_proto},
                                    onnx::WireField{attribute_value, 10, function_call},
                                    onnx::WireField{function_call, 2, attribute_entry},
                                    onnx::WireField{tensor_proto, 4, onnx::wire_data}};

}  // namespace
}  // namespace tensorflow

namespace {

onnx::Model convert(tensorflow::GraphDef& proto, const onnx::Pieces& pieces, const std::string& name,
                    const TensorFlowOptions& options) {
  try {
    return tensorflow::build(proto, pieces, name, options);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::bad_input) throw;
    throw Error(fmt::format("{}: {}", name, error.what()));
  }
}

}  // namespace

onnx::Model parse_tensorflow(std::string_view bytes, std::string name, const TensorFlowOptions& options,
                             std::shared_ptr<const void> owner) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw Error(fmt::format("{}: the file has {} bytes; a protobuf file holds at most 2 GiB", name, bytes.size()));
  }
  tensorflow::GraphDef proto;
  auto cut = cut_large_fields(bytes, tensorflow::wire_fields);
  const onnx::ProtobufLog log;
  if (!cut || !proto.ParseFromString(cut->rest)) {
    throw Error(
        fmt::format("{}: this is not a frozen TensorFlow graph, or it is truncated: its {} bytes cannot be parsed as "
                    "the protobuf of a GraphDef{}\n{}",
                    name, bytes.size(), log.reason(), onnx::fetch_again));
  }
  cut->rest = {};
  return convert(proto, onnx::Pieces(std::move(cut->pieces), std::move(owner)), name, options);
}

namespace {

constexpr int deepest_nesting = 100;  // The limit for text files is the limit that protobuf has for binary files.

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty()) text = fmt::format("line {}, column {}: {}", line + 1, column + 1, message);
  }
  std::string text;
};

onnx::Model parse_text(std::string_view bytes, const std::string& name, const TensorFlowOptions& options) {
  tensorflow::GraphDef proto;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(deepest_nesting);
  parser.RecordErrorsTo(&error);
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  if (!parser.Parse(&stream, &proto)) {
    throw Error(fmt::format("{}: this is not the text of a GraphDef: {}", name, error.text));
  }
  return convert(proto, onnx::Pieces({}, nullptr), name, options);
}

}  // namespace

std::vector<TensorFlowOperator> tensorflow_operators() {
  std::vector<TensorFlowOperator> all;
  for (const auto& [group, entries] : tensorflow::all_operators()) {
    for (const auto& entry : entries) all.push_back({entry.name, group, tensorflow::limits_of(entry.name)});
  }
  constexpr std::string_view flow = "Inputs, constants, branches, loops, calls";
  for (const std::string_view name : {"Const", "Enter", "Exit", "If", "LoopCond", "Merge", "NextIteration",
                                      "PartitionedCall", "Placeholder", "PlaceholderV2", "PlaceholderWithDefault",
                                      "StatefulPartitionedCall", "StatelessIf", "StatelessWhile", "Switch", "While"}) {
    all.push_back({name, flow, tensorflow::limits_of(name)});
  }
  return all;
}

onnx::Model read_tensorflow(const std::filesystem::path& path, const TensorFlowOptions& options) {
  const auto file = onnx::MappedFile::open(path);
  if (path.extension() == ".pbtxt") {
    if (file->view().size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
      throw Error(
          fmt::format("{}: the file has {} bytes; it may have at most 2 GiB", path.string(), file->view().size()));
    }
    return parse_text(file->view(), path.string(), options);
  }
  return parse_tensorflow(file->view(), path.string(), options, file);
}

}  // namespace graft
