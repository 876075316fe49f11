// Converts a Model to ONNX's protobuf, and writes files.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "core/atomic_file.hpp"
#include "onnx/onnx-ml.pb.h"
#include "onnx/onnx_io.hpp"
#include "onnx/wire.hpp"

namespace graft::onnx {
namespace {

constexpr std::size_t page = 4096;  // The alignment that ONNX recommends for external data.
/// The largest size of the weights in one file: protobuf's 2 GiB minus room for the nodes.
constexpr std::size_t automatic_limit = (std::size_t{1} << 31U) - (std::size_t{1} << 26U);

/// The file of external data, to which large tensors are written.
struct ExternalSink {
  AtomicFile& file;
  std::string location;
  std::size_t above;
  std::size_t offset = 0;

  void add(::onnx::TensorProto& proto, const Bytes& bytes) {
    const std::size_t padding = (page - offset % page) % page;
    file.write(std::string(padding, '\0'));
    offset += padding;
    const auto entry = [&](const char* key, std::string value) {
      auto* pair = proto.add_external_data();
      pair->set_key(key);
      pair->set_value(std::move(value));
    };
    entry("location", location);
    entry("offset", std::to_string(offset));
    entry("length", std::to_string(bytes.size()));
    proto.set_data_location(::onnx::TensorProto::EXTERNAL);
    file.write(bytes.view());
    offset += bytes.size();
  }
};

template <class Entries>
void write_map(const std::map<std::string, std::string, std::less<>>& map, Entries& entries) {
  for (const auto& [key, value] : map) {
    auto* entry = entries.Add();
    entry->set_key(key);
    entry->set_value(value);
  }
}

template <class Proto>
void restore(Proto& proto, const std::string& opaque) {
  if (!opaque.empty() && !proto.ParsePartialFromString(opaque)) {
    throw Error(Error::Kind::internal, "fields that were read from a protobuf cannot be written back");
  }
}

/// An initializer of the main graph whose data are written to the file without a copy.
struct StreamedTensor {
  std::string start;  ///< The beginning of the field in GraphProto; the data follow it.
  Bytes data;
};

/// The parts of a model file in the order of the file.
struct ModelParts {
  ::onnx::ModelProto before_graph;
  ::onnx::GraphProto nodes;  ///< Holds the nodes and the name of the graph.
  std::vector<StreamedTensor> initializers;
  ::onnx::GraphProto after_initializers;
  ::onnx::ModelProto after_graph;
};

void append_tag(std::string& out, int field) {
  append_varint(out, (static_cast<std::uint64_t>(field) << 3U) | wire_length);
}

class Writer {
 public:
  explicit Writer(ExternalSink* sink) : sink_(sink) {}

  void write(const Model& model, ModelParts& parts) {
    ::onnx::ModelProto& head = parts.before_graph;
    head.set_ir_version(model.ir_version);
    set(model.producer_name, [&](const auto& v) { head.set_producer_name(v); });
    set(model.producer_version, [&](const auto& v) { head.set_producer_version(v); });
    set(model.domain, [&](const auto& v) { head.set_domain(v); });
    if (model.model_version != 0) head.set_model_version(model.model_version);
    set(model.doc, [&](const auto& v) { head.set_doc_string(v); });
    ::onnx::GraphProto& graph = parts.after_initializers;
    write_graph(model.graph(), graph, &parts.initializers);
    parts.nodes.mutable_node()->Swap(graph.mutable_node());
    parts.nodes.set_name(graph.name());
    graph.clear_name();
    ::onnx::ModelProto& tail = parts.after_graph;
    restore(tail, model.opaque);
    write_map(model.metadata, *tail.mutable_metadata_props());
    write_opsets(model.graph(), *tail.mutable_opset_import());
    for (const auto& [key, function] : model.functions) write_function(function, *tail.add_functions());
  }

 private:
  StreamedTensor stream(const Value& value) {
    StreamedTensor result;
    const TensorData& tensor = *value.initializer;
    ::onnx::TensorProto proto;
    TensorData without_data = tensor;
    without_data.bytes = {};
    const bool is_external = sink_ != nullptr && tensor.bytes.size() > sink_->above;
    const bool is_raw = tensor.type != ElementType::string && !is_external;
    write_tensor(is_raw ? without_data : tensor, proto, true);
    proto.set_name(value.name);
    std::string field;
    if (is_raw) {
      proto.clear_raw_data();
      append_tag(field, ::onnx::TensorProto::kRawDataFieldNumber);
      append_varint(field, tensor.bytes.size());
      result.data = tensor.bytes;
    }
    field = proto.SerializePartialAsString() + field;
    append_tag(result.start, ::onnx::GraphProto::kInitializerFieldNumber);
    append_varint(result.start, field.size() + result.data.size());
    result.start += field;
    return result;
  }

  template <class F>
  static void set(const std::string& text, F&& setter) {
    if (!text.empty()) setter(text);
  }

  template <class Imports>
  static void write_opsets(const Graph& graph, Imports& imports) {
    for (const auto& [domain, version] : graph.opset_imports) {
      auto* import = imports.Add();
      set(domain, [&](const auto& v) { import->set_domain(v); });
      import->set_version(version);
    }
  }

  void write_tensor(const TensorData& tensor, ::onnx::TensorProto& proto, bool may_be_external) {
    restore(proto, tensor.opaque);
    set(tensor.name, [&](const auto& v) { proto.set_name(v); });
    for (const std::int64_t dim : tensor.dims) proto.add_dims(dim);
    proto.set_data_type(static_cast<std::int32_t>(tensor.type));
    if (tensor.type == ElementType::string) {
      for (const std::string& text : *tensor.strings) proto.add_string_data(text);
    } else if (may_be_external && sink_ != nullptr && tensor.bytes.size() > sink_->above) {
      sink_->add(proto, tensor.bytes);
    } else {
      proto.set_raw_data(tensor.bytes.data(), tensor.bytes.size());
    }
  }

  static bool has_type(const Value& value) { return value.type || value.shape || !value.opaque.empty(); }

  static void write_type(const Value& value, ::onnx::ValueInfoProto& proto) {
    restore(proto, value.opaque);
    proto.set_name(value.name);
    const bool other_kind = proto.has_type() && proto.type().value_case() != ::onnx::TypeProto::VALUE_NOT_SET &&
                            !proto.type().has_tensor_type();
    if (other_kind || (!value.type && !value.shape)) return;
    auto& tensor = *proto.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(static_cast<std::int32_t>(value.type.value_or(ElementType::undefined)));
    if (!value.shape) {
      tensor.clear_shape();
      return;
    }
    auto& shape = *tensor.mutable_shape();
    while (shape.dim_size() > static_cast<int>(value.shape->size())) shape.mutable_dim()->RemoveLast();
    while (shape.dim_size() < static_cast<int>(value.shape->size())) shape.add_dim();
    for (int i = 0; i < shape.dim_size(); ++i) {
      const Dim& dim = (*value.shape)[static_cast<std::size_t>(i)];
      auto& target = *shape.mutable_dim(i);
      target.clear_value();
      if (dim.is_constant()) {
        target.set_dim_value(dim.value());
      } else if (std::string text = dim.to_string(); text.find('?') == std::string::npos) {
        target.set_dim_param(std::move(text));
      }
    }
  }

  /// Writes a graph to `proto`. If `streamed` is given, the initializers are appended to it instead.
  void write_graph(const Graph& graph, ::onnx::GraphProto& proto, std::vector<StreamedTensor>* streamed = nullptr) {
    restore(proto, graph.opaque);
    proto.set_name(graph.name.empty() ? "graph" : graph.name);
    set(graph.doc, [&](const auto& v) { proto.set_doc_string(v); });
    write_map(graph.metadata, *proto.mutable_metadata_props());
    for (const Value* value : graph.inputs()) write_type(*value, *proto.add_input());
    for (const Value* value : graph.outputs()) write_type(*value, *proto.add_output());
    for (const Value* value : graph.values()) {
      if (value->initializer && streamed != nullptr) {
        streamed->push_back(stream(*value));
      } else if (value->initializer) {
        auto& tensor = *proto.add_initializer();
        write_tensor(*value->initializer, tensor, true);
        tensor.set_name(value->name);
      } else if (!value->sparse_initializer.empty()) {
        auto& sparse = *proto.add_sparse_initializer();
        restore(sparse, value->sparse_initializer);
        sparse.mutable_values()->set_name(value->name);
      }
    }
    for (const Node* node : graph.nodes()) {
      write_node(*node, *proto.add_node());
      // Types are written in the order in which a reader adds the values, so that reading and rewriting a file changes
      // nothing.
      for (const Value* value : node->outputs) {
        if (value == nullptr || is_output_of(*value, graph) || !has_type(*value)) continue;
        if (value->type || !value->opaque.empty()) write_type(*value, *proto.add_value_info());
      }
    }
  }

  static bool is_output_of(const Value& value, const Graph& graph) {
    return value.is_output() &&
           std::find(graph.outputs().begin(), graph.outputs().end(), &value) != graph.outputs().end();
  }

  void write_node(const Node& node, ::onnx::NodeProto& proto) {
    restore(proto, node.opaque);
    proto.set_op_type(node.op_type);
    set(node.domain, [&](const auto& v) { proto.set_domain(v); });
    set(node.overload, [&](const auto& v) { proto.set_overload(v); });
    set(node.name, [&](const auto& v) { proto.set_name(v); });
    set(node.doc, [&](const auto& v) { proto.set_doc_string(v); });
    write_map(node.metadata, *proto.mutable_metadata_props());
    for (const Value* value : node.inputs) proto.add_input(value == nullptr ? std::string() : value->name);
    for (const Value* value : node.outputs) proto.add_output(value == nullptr ? std::string() : value->name);
    for (const auto& [name, attribute] : node.attributes) write_attribute(name, attribute, *proto.add_attribute());
  }

  void write_attribute(const std::string& name, const NodeAttribute& attribute, ::onnx::AttributeProto& proto) {
    using Proto = ::onnx::AttributeProto;
    if (const auto* opaque = attribute.get<OpaqueAttribute>()) {
      restore(proto, opaque->proto);
    } else if (const auto* f = attribute.get<float>()) {
      proto.set_type(Proto::FLOAT);
      proto.set_f(*f);
    } else if (const auto* i = attribute.get<std::int64_t>()) {
      proto.set_type(Proto::INT);
      proto.set_i(*i);
    } else if (const auto* s = attribute.get<std::string>()) {
      proto.set_type(Proto::STRING);
      proto.set_s(*s);
    } else if (const auto* floats = attribute.get<std::vector<float>>()) {
      proto.set_type(Proto::FLOATS);
      for (const float value : *floats) proto.add_floats(value);
    } else if (const auto* ints = attribute.get<std::vector<std::int64_t>>()) {
      proto.set_type(Proto::INTS);
      for (const std::int64_t value : *ints) proto.add_ints(value);
    } else if (const auto* strings = attribute.get<std::vector<std::string>>()) {
      proto.set_type(Proto::STRINGS);
      for (const std::string& value : *strings) proto.add_strings(value);
    } else if (const auto* tensor = attribute.get<TensorData>()) {
      proto.set_type(Proto::TENSOR);
      write_tensor(*tensor, *proto.mutable_t(), false);
    } else if (const auto* tensors = attribute.get<std::vector<TensorData>>()) {
      proto.set_type(Proto::TENSORS);
      for (const TensorData& one : *tensors) write_tensor(one, *proto.add_tensors(), false);
    } else if (const auto* graph = attribute.get<std::unique_ptr<Graph>>()) {
      proto.set_type(Proto::GRAPH);
      write_graph(**graph, *proto.mutable_g());
    } else if (const auto* graphs = attribute.get<std::vector<std::unique_ptr<Graph>>>()) {
      proto.set_type(Proto::GRAPHS);
      for (const auto& one : *graphs) write_graph(*one, *proto.add_graphs());
    } else if (const auto* reference = attribute.get<AttributeReference>()) {
      proto.set_type(static_cast<Proto::AttributeType>(reference->onnx_type));
      proto.set_ref_attr_name(reference->name);
    }
    proto.set_name(name);
    set(attribute.doc, [&](const auto& v) { proto.set_doc_string(v); });
  }

  void write_function(const FunctionDefinition& function, ::onnx::FunctionProto& proto) {
    restore(proto, function.opaque);
    proto.set_name(function.key.name);
    proto.set_domain(function.key.domain);
    set(function.key.overload, [&](const auto& v) { proto.set_overload(v); });
    set(function.doc, [&](const auto& v) { proto.set_doc_string(v); });
    write_map(function.metadata, *proto.mutable_metadata_props());
    for (const std::string& name : function.attributes) proto.add_attribute(name);
    for (const auto& [name, value] : function.attribute_defaults)
      write_attribute(name, value, *proto.add_attribute_proto());
    const Graph& body = *function.body;
    write_opsets(body, *proto.mutable_opset_import());
    for (const Value* value : body.inputs()) proto.add_input(value->name);
    for (const Value* value : body.outputs()) proto.add_output(value->name);
    for (const Node* node : body.nodes()) write_node(*node, *proto.add_node());
    for (const Value* value : body.values()) {
      if (value->initializer) {
        throw Error(Error::Kind::internal, "the body of a function holds the initializer '" + value->name + "'");
      }
      if (value->type) write_type(*value, *proto.add_value_info());
    }
  }

  ExternalSink* sink_;
};

/// Calls `begin` with the size of the file, then `write` with each part of the file in order.
template <class Begin, class Write>
void write_parts(const Model& model, ExternalSink* sink, Begin&& begin, Write&& write) {
  ModelParts parts;
  Writer(sink).write(model, parts);
  const auto bytes_of = [](const google::protobuf::MessageLite& message) {
    std::string bytes;
    if (!message.SerializePartialToString(&bytes))
      throw Error(Error::Kind::internal, "the protobuf library refused the model");
    return bytes;
  };
  std::string head = bytes_of(parts.before_graph);
  const std::string nodes = bytes_of(parts.nodes);
  const std::string graph_tail = bytes_of(parts.after_initializers);
  const std::string tail = bytes_of(parts.after_graph);
  std::size_t graph_size = nodes.size() + graph_tail.size();
  for (const StreamedTensor& tensor : parts.initializers) graph_size += tensor.start.size() + tensor.data.size();
  append_tag(head, ::onnx::ModelProto::kGraphFieldNumber);
  append_varint(head, graph_size);
  const std::size_t size = head.size() + graph_size + tail.size();
  if (size > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw Error(
        fmt::format("{}: the model takes {} bytes; a protobuf file holds at most 2 GiB. Write its weights as "
                    "external data",
                    model.source, size));
  }
  begin(size);
  write(head);
  write(nodes);
  for (const StreamedTensor& tensor : parts.initializers) {
    write(tensor.start);
    write(tensor.data.view());
  }
  write(graph_tail);
  write(tail);
}

void write_parts(const Model& model, ExternalSink* sink, AtomicFile& file) {
  constexpr std::size_t large = std::size_t{1} << 16U;
  std::string small;  // Small parts that are written together.
  const auto begin = [](std::size_t /*size*/) {};
  write_parts(model, sink, begin, [&](std::string_view bytes) {
    if (small.size() + bytes.size() < large) {
      small += bytes;
      return;
    }
    file.write(small);
    small.clear();
    file.write(bytes);
  });
  file.write(small);
}

bool wants_external(const Model& model, ExternalData choice) {
  if (choice != ExternalData::automatic) return choice == ExternalData::always;
  return weight_bytes(model) > automatic_limit;
}

}  // namespace

std::size_t weight_bytes(const Model& model) {
  std::size_t total = 0;
  const auto count_attribute = [&](const NodeAttribute& attribute) {
    if (const auto* tensor = attribute.get<TensorData>()) total += tensor->bytes.size();
    if (const auto* tensors = attribute.get<std::vector<TensorData>>()) {
      for (const TensorData& tensor : *tensors) total += tensor.bytes.size();
    }
  };
  const auto count_initializers = [&](const Graph& graph) {
    for (const Value* value : graph.initializers()) total += value->initializer->bytes.size();
  };
  const auto count = [&](const Graph& graph) {
    count_initializers(graph);
    graph.for_each_node([&](const Node& node) {
      for (const Graph* inner : node.subgraphs()) count_initializers(*inner);
      for (const auto& [name, attribute] : node.attributes) count_attribute(attribute);
    });
  };
  count(model.graph());
  for (const auto& [key, function] : model.functions) {
    count(*function.body);
    for (const auto& [name, attribute] : function.attribute_defaults) count_attribute(attribute);
  }
  return total;
}

std::string serialize_onnx(const Model& model) {
  std::string bytes;
  write_parts(
      model, nullptr, [&](std::size_t size) { bytes.reserve(size); }, [&](std::string_view part) { bytes += part; });
  return bytes;
}

std::optional<std::filesystem::path> write_onnx(const Model& model, const std::filesystem::path& path,
                                                const WriteOptions& options) {
  AtomicFile file(path);
  if (!wants_external(model, options.external_data)) {
    write_parts(model, nullptr, file);
    file.commit();
    return std::nullopt;
  }
  std::filesystem::path data_path = path;
  data_path += ".data";
  AtomicFile data(data_path);
  ExternalSink sink{data, data_path.filename().string(), options.external_above};
  write_parts(model, &sink, file);
  file.flush();  // A full disk must be reported before either file is renamed.
  if (sink.offset != 0) data.commit();
  file.commit();
  return sink.offset == 0 ? std::nullopt : std::optional(data_path);
}

}  // namespace graft::onnx
