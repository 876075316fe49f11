// Converts ONNX's protobuf to a Model, and refuses malformed files.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "onnx/bytes_part.hpp"
#include "onnx/faults.hpp"
#include "onnx/functions.hpp"
#include "onnx/mapped_file.hpp"
#include "onnx/onnx-ml.pb.h"
#include "onnx/onnx_io.hpp"
#include "onnx/protobuf_log.hpp"
#include "onnx/schema.hpp"
#include "onnx/schema_ports.hpp"
#include "onnx/shape_inference.hpp"
#include "onnx/wire.hpp"

namespace graft::onnx {
namespace {

constexpr int deepest_nesting = 24;

std::string standard_domain(const std::string& domain) { return domain == "ai.onnx" ? std::string() : domain; }

template <class Entries>
std::map<std::string, std::string, std::less<>> to_map(const Entries& entries) {
  std::map<std::string, std::string, std::less<>> result;
  for (const auto& entry : entries) result[entry.key()] = entry.value();
  return result;
}

class Reader {
 public:
  Reader(const std::filesystem::path& folder, std::string source, const Pieces& pieces)
      : folder_(folder), source_(std::move(source)), pieces_(pieces) {}

  Model read(::onnx::ModelProto& proto) {
    if (!proto.has_graph()) {
      fail("it contains no graph, because it is empty or a protobuf of another kind; pass an ONNX model (ModelProto)");
    }
    if (proto.ir_version() < 1 || proto.ir_version() > newest_ir_version) {
      fail(
          fmt::format("the file has IR version {}; Graft supports the versions 1 to {}\nExport the model again with an "
                      "older version of onnx",
                      proto.ir_version(), newest_ir_version));
    }
    if (proto.training_info_size() != 0) {
      fail(
          "it contains training information (training_info), which Graft does not read\nExport the model for "
          "inference");
    }
    Model model;
    model.source = source_;
    // In an IR 3 file every initializer must also be an input. Since IR 4, an initializer that is an input is a default
    // that a caller may replace.
    initializers_are_inputs_ = proto.ir_version() < 4;
    model.ir_version = std::max<std::int64_t>(proto.ir_version(), 4);
    model.producer_name = proto.producer_name();
    model.producer_version = proto.producer_version();
    model.domain = proto.domain();
    model.model_version = proto.model_version();
    model.doc = proto.doc_string();
    model.metadata = to_map(proto.metadata_props());
    read_opsets(proto.opset_import(), *model.main);

    read_graph(*proto.mutable_graph(), *model.main, 0, nullptr);
    for (::onnx::FunctionProto& function : *proto.mutable_functions()) {
      FunctionDefinition definition = read_function(function);
      const FunctionKey key = definition.key;
      if (!model.functions.emplace(key, std::move(definition)).second) {
        fail(fmt::format("the function {}::{} is defined twice", key.domain, key.name));
      }
    }
    check_imports(model);
    forget_names_of_elements(model);

    proto.clear_graph();
    proto.clear_functions();
    proto.clear_ir_version();
    proto.clear_producer_name();
    proto.clear_producer_version();
    proto.clear_domain();
    proto.clear_model_version();
    proto.clear_doc_string();
    proto.clear_metadata_props();
    proto.clear_opset_import();
    model.opaque = proto.SerializePartialAsString();
    return model;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(fmt::format("{}: {}{}", source_, where_, message));
  }

  template <class Imports>
  void read_opsets(const Imports& imports, Graph& graph) const {
    for (const auto& import : imports) {
      std::string domain = standard_domain(import.domain());
      if (import.version() < 1) {
        fail(fmt::format("the operator set of domain '{}' has version {}; it must be at least 1", domain,
                         import.version()));
      }
      const auto [entry, is_new] = graph.opset_imports.emplace(std::move(domain), import.version());
      if (!is_new && entry->second != import.version()) {
        fail(fmt::format("the domain '{}' is imported in the versions {} and {}; only one version may be imported",
                         entry->first, entry->second, import.version()));
      }
    }
  }

  void check_imports(const Model& model) const {
    const auto check = [&](const Graph& graph, const std::string& where) {
      graph.for_each_node([&](const Node& node) {
        if (graph.opset(node.domain) == 0 && node.domain.empty()) {
          fail(fmt::format("{}{}: the file imports no operator set of ai.onnx; it must import one from 1 to {}", where,
                           describe(node), newest_opset));
        }
      });
      if (graph.opset() > newest_opset) {
        fail(
            fmt::format("{}it imports operator set {} of ai.onnx; Graft supports the operator sets 1 to {}\nExport the "
                        "model again with one of these",
                        where, graph.opset(), newest_opset));
      }
    };
    check(model.graph(), "");
    for (const auto& [key, function] : model.functions) {
      check(*function.body, fmt::format("function {}::{}: ", key.domain, key.name));
    }
  }

  // ---- Tensors

  void check_rank(std::size_t rank, const std::string& what) const {
    if (rank > highest_rank)
      fail(fmt::format("{}: it has {} dimensions; it may have at most {}", what, rank, highest_rank));
  }

  std::int64_t count_elements(const ::onnx::TensorProto& proto, const std::string& what) const {
    std::int64_t count = 1;
    bool empty = false;
    for (const std::int64_t dim : proto.dims()) {
      if (dim < 0) fail(fmt::format("{}: it has the dimension {}; every dimension must be at least 0", what, dim));
      empty = empty || dim == 0;
    }
    check_rank(static_cast<std::size_t>(proto.dims_size()), what);
    if (empty) return 0;
    for (const std::int64_t dim : proto.dims()) {
      if (__builtin_mul_overflow(count, dim, &count)) {
        fail(fmt::format("{}: the dimensions [{}] have more elements than 64 bits can count", what,
                         fmt::join(proto.dims(), ", ")));
      }
    }
    return count;
  }

  std::int64_t count_bytes(ElementType type, std::int64_t elements, const std::string& what) const {
    std::int64_t bits = 0;
    if (__builtin_mul_overflow(elements, static_cast<std::int64_t>(bits_of(type)), &bits)) {
      fail(
          fmt::format("{}: {} elements of {} need more bytes than 64 bits can count", what, elements, to_string(type)));
    }
    return bits / 8 + (bits % 8 != 0 ? 1 : 0);
  }

  void check_count(std::int64_t found, std::int64_t wanted, std::string_view unit, const std::string& what,
                   const ::onnx::TensorProto& proto) const {
    if (found == wanted) return;
    fail(fmt::format("{}: it has {} {} of data; the dimensions [{}] of type {} need {}", what, found, unit,
                     fmt::join(proto.dims(), ", "), to_string(static_cast<ElementType>(proto.data_type())), wanted));
  }

  /// Reads the elements of a tensor from the typed field of its element type, such as float_data for f32. Several
  /// element types use the same field.
  Bytes read_typed(const ::onnx::TensorProto& proto, ElementType type, std::int64_t elements,
                   const std::string& what) const {
    static_cast<void>(count_bytes(type, elements, what));  // Checks that the parts of complex numbers can be counted.
    const auto expect = [&](int found, std::int64_t wanted) { check_count(found, wanted, "elements", what, proto); };
    switch (type) {
      case ElementType::f32:
      case ElementType::complex64:
        expect(proto.float_data_size(), type == ElementType::f32 ? elements : elements * 2);
        return Bytes(pack<float>(proto.float_data()));
      case ElementType::f64:
      case ElementType::complex128:
        expect(proto.double_data_size(), type == ElementType::f64 ? elements : elements * 2);
        return Bytes(pack<double>(proto.double_data()));
      case ElementType::i64:
        expect(proto.int64_data_size(), elements);
        return Bytes(pack<std::int64_t>(proto.int64_data()));
      case ElementType::u64:
        expect(proto.uint64_data_size(), elements);
        return Bytes(pack<std::uint64_t>(proto.uint64_data()));
      case ElementType::u32:
        expect(proto.uint64_data_size(), elements);
        return Bytes(pack<std::uint32_t>(proto.uint64_data()));
      case ElementType::i32:
        expect(proto.int32_data_size(), elements);
        return Bytes(pack<std::int32_t>(proto.int32_data()));
      case ElementType::f6e2m3:
      case ElementType::f6e3m2:
        if (elements != 0) fail(fmt::format("{}: elements of 6 bits must be stored in raw_data", what));
        return {};
      default: break;
    }
    const int bits = bits_of(type);
    if (bits == 16) {
      expect(proto.int32_data_size(), elements);
      return Bytes(pack<std::uint16_t>(proto.int32_data()));
    }
    if (bits != 0 && bits <= 8) {  // Elements of 4 and 2 bits are packed: the typed field has one number per byte.
      expect(proto.int32_data_size(), count_bytes(type, elements, what));
      return Bytes(pack<std::uint8_t>(proto.int32_data()));
    }
    if (elements != 0) {
      fail(fmt::format("{}: elements of type {} must be stored in raw_data; Graft does not read them elsewhere", what,
                       to_string(type)));
    }
    return {};
  }

  std::int64_t read_number(const std::string& text, const char* key, const std::string& what) const {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 0) {
      fail(fmt::format("{}: external data: {} is '{}'; it must be a number of bytes, at least 0", what, key, text));
    }
    return number;
  }

  /// Returns the next step for an error about the file of external data at `location`, a path relative to the model's
  /// folder.
  [[nodiscard]] std::string copy_step(const std::string& location) const {
    return fmt::format("Copy the whole file to {}: the model and its data belong together",
                       (folder_ / location).string());
  }

  const std::shared_ptr<const MappedFile>& external_file(const std::string& location, const std::string& what) {
    const auto known = files_.find(location);
    if (known != files_.end()) return known->second;
    if (folder_.empty())
      fail(fmt::format("{}: its external data '{}' cannot be found, because the model was not read from a file", what,
                       location));
    if (location.find('\0') != std::string::npos) {
      fail(fmt::format(
          "{}: the path of its external data contains a zero byte; it must be a path inside the model's folder", what));
    }
    const std::filesystem::path relative(location);
    const bool climbs = std::find(relative.begin(), relative.end(), "..") != relative.end();
    if (location.empty() || relative.is_absolute() || climbs) {
      fail(fmt::format(
          "{}: the path of its external data is '{}'; it must lie inside the model's folder and not contain '..'", what,
          location));
    }
    std::error_code error;
    const std::filesystem::path home = std::filesystem::canonical(folder_, error);
    if (error) {
      fail(fmt::format("{}: external data: the model's folder {}: {}\n{}", what, folder_.string(), error.message(),
                       copy_step(location)));
    }
    const std::filesystem::path target = std::filesystem::canonical(home / relative, error);
    if (error) {
      fail(fmt::format("{}: external data '{}': {}\n{}", what, location, error.message(), copy_step(location)));
    }
    const auto [home_end, target_end] = std::mismatch(home.begin(), home.end(), target.begin(), target.end());
    if (home_end != home.end()) {
      fail(fmt::format(
          "{}: external data '{}' is a link to {}, outside the model's folder; it must be a file inside this folder",
          what, location, target.string()));
    }
    try {
      std::shared_ptr<const MappedFile>& file = by_target_[target];  // A file may have several names.
      if (file == nullptr) {
        file = MappedFile::open(target);
        external_files_ += file->view().size();
      }
      return files_.emplace(location, file).first->second;
    } catch (const Error& file_error) {
      fail(fmt::format("{}: external data: {}\n{}", what, file_error.what(), copy_step(location)));
    }
  }

  /// Adds `bytes`, the size of a tensor in external data, to the total of all such tensors. Throws Error, which names
  /// the tensor `what`, if the total is many times the size of the files. Tensors may share a part of a file, as tied
  /// weights do. But a written model contains each of them separately, so that a few thousand tensors that share a
  /// gigabyte would fill any disk.
  void check_external_total(std::int64_t bytes, const std::string& what) {
    constexpr std::size_t always = std::size_t{256} << 20U;
    constexpr std::size_t factor = 4;
    external_total_ += static_cast<std::size_t>(bytes);
    if (external_total_ <= std::max(always, factor * external_files_)) return;
    fail(
        fmt::format("{}: with this tensor, the external data add up to {} bytes, but their files have {}; at most {} "
                    "times the size of the files is supported",
                    what, external_total_, external_files_, factor));
  }

  Bytes read_external(const ::onnx::TensorProto& proto, ElementType type, std::int64_t elements,
                      const std::string& what) {
    std::string location;
    std::int64_t offset = 0;
    std::optional<std::int64_t> length;
    for (const auto& entry : proto.external_data()) {
      if (entry.key() == "location") location = entry.value();
      if (entry.key() == "offset") offset = read_number(entry.value(), "offset", what);
      if (entry.key() == "length") length = read_number(entry.value(), "length", what);
    }
    if (bits_of(type) == 0)
      fail(fmt::format("{}: elements of type {} cannot be stored as external data", what, to_string(type)));
    const auto& file = external_file(location, what);
    const auto size = static_cast<std::int64_t>(file->view().size());
    const std::int64_t wanted = count_bytes(type, elements, what);
    if (length) check_count(*length, wanted, "bytes", what, proto);
    if (offset > size || wanted > size - offset) {
      fail(fmt::format("{}: external data '{}' has {} bytes; {} from byte {} on are needed\n{}", what, location, size,
                       wanted, offset, copy_step(location)));
    }
    check_external_total(wanted, what);
    const std::string_view part =
        file->view().substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(wanted));
    return {file, {part.data(), part.size()}};
  }

  TensorData read_tensor(::onnx::TensorProto& proto, const std::string& what) {
    TensorData tensor;
    tensor.type = static_cast<ElementType>(proto.data_type());
    if (tensor.type == ElementType::undefined) fail(fmt::format("{}: the element type is undefined", what));
    if (proto.has_segment())
      fail(fmt::format("{}: the tensor is stored in segments; it must be stored in one part", what));
    const std::int64_t elements = count_elements(proto, what);
    const auto piece = take_piece(*proto.mutable_unknown_fields());
    tensor.dims.assign(proto.dims().begin(), proto.dims().end());
    if (proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
      tensor.bytes = read_external(proto, tensor.type, elements, what);
      tensor.external = true;
    } else if (tensor.type == ElementType::string) {
      check_count(proto.string_data_size(), elements, "elements", what, proto);
      tensor.strings = std::make_shared<const std::vector<std::string>>(
          std::make_move_iterator(proto.mutable_string_data()->begin()),
          std::make_move_iterator(proto.mutable_string_data()->end()));
    } else if (proto.has_raw_data() || piece) {
      tensor.bytes = piece ? pieces_.at(*piece) : Bytes(std::move(*proto.mutable_raw_data()));
      if (bits_of(tensor.type) != 0) {
        check_count(static_cast<std::int64_t>(tensor.bytes.size()), count_bytes(tensor.type, elements, what), "bytes",
                    what, proto);
      }
    } else {
      tensor.bytes = read_typed(proto, tensor.type, elements, what);
    }
    tensor.name = proto.name();
    proto.clear_name();
    proto.clear_dims();
    proto.clear_data_type();
    proto.clear_raw_data();
    proto.clear_float_data();
    proto.clear_double_data();
    proto.clear_int32_data();
    proto.clear_int64_data();
    proto.clear_uint64_data();
    proto.clear_string_data();
    proto.clear_external_data();
    proto.clear_data_location();
    tensor.opaque = proto.SerializePartialAsString();
    return tensor;
  }

  // ---- Types

  Shape read_shape(const ::onnx::TensorShapeProto& proto, const std::string& value) const {
    Shape shape;
    for (const auto& dim : proto.dim()) {
      if (dim.has_dim_value() && dim.dim_value() < -1) {
        fail(fmt::format("value '{}': it has the dimension {}; a dimension must be at least 0, or -1 if it is unknown",
                         value, dim.dim_value()));
      }
      if (dim.has_dim_value() && dim.dim_value() >= 0) {
        shape.emplace_back(dim.dim_value());
      } else if (dim.has_dim_param() && !dim.dim_param().empty() && dim.dim_param()[0] != '?') {
        shape.push_back(Dim::symbol(dim.dim_param()));
      } else {
        shape.push_back(unknown_dim());
      }
    }
    check_rank(shape.size(), fmt::format("value '{}'", value));
    return shape;
  }

  /// Returns the type of a sequence or an optional of tensors, or nothing for any other type.
  std::optional<Container> read_container(const ::onnx::TypeProto& proto, const std::string& value) {
    Container container;
    const ::onnx::TypeProto* held = &proto;
    if (held->has_optional_type()) {
      held = &held->optional_type().elem_type();
      container.kind = held->has_sequence_type() ? Container::Kind::optional_sequence : Container::Kind::optional;
    } else if (!held->has_sequence_type()) {
      return std::nullopt;
    }
    if (held->has_sequence_type()) held = &held->sequence_type().elem_type();
    if (!held->has_tensor_type() || held->tensor_type().elem_type() == 0) return std::nullopt;
    container.type = static_cast<ElementType>(held->tensor_type().elem_type());
    if (!held->tensor_type().has_shape()) return container;
    container.shape = read_shape(held->tensor_type().shape(), value);
    note_names_of_elements(container.shape);
    for (Dim& dim : *container.shape) {  // A symbolic name means nothing here: each tensor may have another size.
      if (!dim.is_constant()) dim = unknown_dim();
    }
    return container;
  }

  /// Records the symbolic names in the declared shape of an element of a sequence or an optional.
  void note_names_of_elements(const std::optional<Shape>& shape) {
    if (!shape) return;
    for (const Dim& dim : *shape) {
      if (!dim.is_constant() && !is_unknown(dim)) names_of_elements_.insert(dim.name());
    }
  }

  /// Removes the symbolic names of elements' sizes from the declared shapes of computed tensors. ONNX's shape inference
  /// copies such a name from the type of a sequence to all its elements, whose sizes may differ, and to tensors that
  /// are computed from them.
  void forget_names_of_elements(Model& model) {
    const auto for_each_node = [&](const std::function<void(const Node&)>& visit) {
      std::as_const(model).graph().for_each_node(visit);
      for (const auto& [key, function] : model.functions) std::as_const(*function.body).for_each_node(visit);
    };
    for_each_node([&](const Node& node) {
      if (is_any_of(node, {"SequenceAt", "ConcatFromSequence", "OptionalGetElement"})) {
        for (const Value* output : node.outputs) {
          if (output != nullptr) note_names_of_elements(output->shape);
        }
      }
      for (const Graph* body : node.is("SequenceMap") ? node.subgraphs() : std::vector<Graph*>{}) {
        for (const Value* input : body->inputs()) note_names_of_elements(input->shape);
      }
    });
    if (names_of_elements_.empty()) return;
    const auto forget = [&](const std::vector<Value*>& values) {
      for (Value* value : values) {
        if (value == nullptr || !value->shape) continue;
        for (Dim& dim : *value->shape) {
          if (dim.kind() == Dim::Kind::symbol && names_of_elements_.contains(dim.name())) dim = unknown_dim();
        }
      }
    };
    for_each_node([&](const Node& node) {
      forget(node.outputs);
      for (const Graph* inner : node.subgraphs()) forget(inner->inputs());
    });
  }

  void read_type(::onnx::ValueInfoProto& info, Value& value) {
    value.container = read_container(info.type(), value.name);
    if (info.has_type() && info.type().has_tensor_type()) {
      ::onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
      if (tensor.elem_type() != 0) value.type = static_cast<ElementType>(tensor.elem_type());
      bool has_denotation = false;
      if (tensor.has_shape()) {
        value.shape = read_shape(tensor.shape(), value.name);
        const auto& dims = tensor.shape().dim();
        has_denotation = std::any_of(dims.begin(), dims.end(), [](const auto& dim) { return dim.has_denotation(); });
      }
      tensor.clear_elem_type();
      if (!has_denotation) tensor.clear_shape();
      if (!has_denotation && !info.type().has_denotation()) info.clear_type();
    }
    info.clear_name();
    value.opaque = info.SerializePartialAsString();
  }

  // ---- Graphs

  Value& define(Graph& graph, const std::string& name, const char* what) const {
    if (name.empty()) fail(fmt::format("a name is empty; every {} needs a name", what));
    if (graph.find_local(name) != nullptr)
      fail(fmt::format("{} '{}': the name is defined twice in its graph", what, name));
    return *graph.add_value(name);
  }

  void read_graph(::onnx::GraphProto& proto, Graph& graph, int depth, const FunctionDefinition* function) {
    if (depth > deepest_nesting) fail(fmt::format("sub-graphs are nested deeper than {} levels", deepest_nesting));
    graph.name = proto.name();
    graph.doc = proto.doc_string();
    graph.metadata = to_map(proto.metadata_props());

    for (::onnx::ValueInfoProto& info : *proto.mutable_input()) {
      Value& value = define(graph, info.name(), "graph input");
      graph.set_is_input(value, true);
      read_type(info, value);
    }
    for (::onnx::TensorProto& tensor : *proto.mutable_initializer()) {
      const std::string name = tensor.name();
      const std::string what = fmt::format("initializer '{}'", name);
      Value* value = name.empty() ? nullptr : graph.find_local(name);
      if (value != nullptr && (!value->is_input || value->initializer))
        fail(what + ": the name is defined twice in its graph");
      if (value == nullptr) value = &define(graph, name, "initializer");
      TensorData data = read_tensor(tensor, what);
      data.name.clear();
      graph.set_initializer(*value, std::move(data));
      if (value->is_input && initializers_are_inputs_) graph.set_is_input(*value, false);
    }
    for (::onnx::SparseTensorProto& sparse : *proto.mutable_sparse_initializer()) {
      Value& value = define(graph, sparse.values().name(), "sparse initializer");
      check_rank(static_cast<std::size_t>(sparse.dims_size()), fmt::format("sparse initializer '{}'", value.name));
      for (const std::int64_t dim : sparse.dims()) {
        if (dim < 0)
          fail(fmt::format("sparse initializer '{}': it has the dimension {}; every dimension must be at least 0",
                           value.name, dim));
      }
      value.type = static_cast<ElementType>(sparse.values().data_type());
      value.shape = Shape(sparse.dims().begin(), sparse.dims().end());
      value.sparse_initializer = sparse.SerializePartialAsString();
    }
    read_nodes(*proto.mutable_node(), graph, depth, function);

    for (::onnx::ValueInfoProto& info : *proto.mutable_value_info()) {
      Value* value = graph.find_local(info.name());
      if (value != nullptr && !value->initializer && !value->is_input) read_type(info, *value);
    }
    for (::onnx::ValueInfoProto& info : *proto.mutable_output()) {
      Value* value = graph.find(info.name());
      if (value == nullptr)
        fail(fmt::format("no node, input or initializer defines the graph output '{}'", info.name()));
      graph.add_output(*value);
      if (value->graph == &graph && !value->is_input && !value->initializer) read_type(info, *value);
    }
    try {
      graph.topological_sort();
    } catch (const Error& error) {
      fail(error.what());
    }

    proto.clear_name();
    proto.clear_doc_string();
    proto.clear_metadata_props();
    proto.clear_input();
    proto.clear_output();
    proto.clear_value_info();
    proto.clear_initializer();
    proto.clear_sparse_initializer();
    proto.clear_node();
    graph.opaque = proto.SerializePartialAsString();
  }

  void read_nodes(google::protobuf::RepeatedPtrField<::onnx::NodeProto>& protos, Graph& graph, int depth,
                  const FunctionDefinition* function) {
    // All names are defined first, because the nodes of a file may be in any order.
    for (const ::onnx::NodeProto& proto : protos) {
      for (const std::string& name : proto.output()) {
        if (!name.empty()) define(graph, name, "node output");
      }
    }
    for (::onnx::NodeProto& proto : protos) {
      const std::string outer_where = where_;
      where_ += describe_proto(proto) + ": ";
      if (proto.op_type().empty()) fail("it has no op_type");
      std::vector<Value*> inputs;
      std::vector<Value*> outputs;
      for (const std::string& name : proto.input()) {
        inputs.push_back(name.empty() ? nullptr : graph.find(name));
        if (!name.empty() && inputs.back() == nullptr) {
          fail(fmt::format(
              "input {0} is '{1}', which no input, initializer or node defines\nExport the model again with "
              "the weight or node that defines '{1}', or declare '{1}' as an input",
              inputs.size() - 1, name));
        }
      }
      for (const std::string& name : proto.output()) outputs.push_back(name.empty() ? nullptr : graph.find_local(name));
      Node* node = graph.add_node_with_outputs(proto.op_type(), std::move(inputs), std::move(outputs), nullptr,
                                               standard_domain(proto.domain()));
      node->overload = proto.overload();
      node->name = proto.name();
      node->doc = proto.doc_string();
      node->metadata = to_map(proto.metadata_props());
      for (::onnx::AttributeProto& attribute : *proto.mutable_attribute()) {
        if (attribute.name().empty()) fail("an attribute has no name");
        if (node->attributes.contains(attribute.name()))
          fail(fmt::format("attribute `{}` is given twice", attribute.name()));
        const std::string name = attribute.name();
        NodeAttribute value = read_attribute(attribute, graph, depth, function);
        node->attributes.emplace(name, std::move(value));
      }
      proto.clear_op_type();
      proto.clear_domain();
      proto.clear_overload();
      proto.clear_name();
      proto.clear_doc_string();
      proto.clear_metadata_props();
      proto.clear_input();
      proto.clear_output();
      proto.clear_attribute();
      node->opaque = proto.SerializePartialAsString();
      where_ = outer_where;
    }
  }

  static std::string describe_proto(const ::onnx::NodeProto& proto) {
    std::string name = proto.name();
    for (const std::string& output : proto.output()) {
      if (name.empty()) name = output;
    }
    return fmt::format("node '{}' ({})", name, proto.op_type());
  }

  /// Returns the type of an attribute. Files of IR 1 and 2 may omit the type; the field that is present then determines
  /// it.
  static ::onnx::AttributeProto::AttributeType type_of(const ::onnx::AttributeProto& proto) {
    using Proto = ::onnx::AttributeProto;
    if (proto.type() != Proto::UNDEFINED) return proto.type();
    if (proto.has_f()) return Proto::FLOAT;
    if (proto.has_i()) return Proto::INT;
    if (proto.has_s()) return Proto::STRING;
    if (proto.has_t()) return Proto::TENSOR;
    if (proto.has_g()) return Proto::GRAPH;
    if (proto.floats_size() != 0) return Proto::FLOATS;
    if (proto.ints_size() != 0) return Proto::INTS;
    if (proto.strings_size() != 0) return Proto::STRINGS;
    if (proto.tensors_size() != 0) return Proto::TENSORS;
    if (proto.graphs_size() != 0) return Proto::GRAPHS;
    return Proto::UNDEFINED;
  }

  NodeAttribute read_attribute(::onnx::AttributeProto& proto, Graph& graph, int depth,
                               const FunctionDefinition* function) {
    using Proto = ::onnx::AttributeProto;
    NodeAttribute result;
    result.doc = proto.doc_string();
    const auto what = fmt::format("attribute `{}`", proto.name());
    if (!proto.ref_attr_name().empty()) {
      if (function == nullptr)
        fail(fmt::format("{} refers to `{}`; only the body of a function may do that", what, proto.ref_attr_name()));
      const bool known = function->attribute_defaults.contains(proto.ref_attr_name()) ||
                         std::find(function->attributes.begin(), function->attributes.end(), proto.ref_attr_name()) !=
                             function->attributes.end();
      if (!known)
        fail(fmt::format("{} refers to `{}`, which the function does not declare", what, proto.ref_attr_name()));
      result.data = AttributeReference{proto.ref_attr_name(), type_of(proto)};
      return result;
    }
    switch (type_of(proto)) {
      case Proto::FLOAT: result.data = proto.f(); break;
      case Proto::INT: result.data = static_cast<std::int64_t>(proto.i()); break;
      case Proto::STRING: result.data = std::move(*proto.mutable_s()); break;
      case Proto::FLOATS: result.data = std::vector<float>(proto.floats().begin(), proto.floats().end()); break;
      case Proto::INTS: result.data = std::vector<std::int64_t>(proto.ints().begin(), proto.ints().end()); break;
      case Proto::STRINGS:
        result.data = std::vector<std::string>(proto.strings().begin(), proto.strings().end());
        break;
      case Proto::TENSOR:
        if (!proto.has_t()) fail(what + " is declared as a tensor and contains none");
        result.data = read_tensor(*proto.mutable_t(), what);
        break;
      case Proto::TENSORS: {
        std::vector<TensorData> tensors;
        for (auto& tensor : *proto.mutable_tensors()) tensors.push_back(read_tensor(tensor, what));
        result.data = std::move(tensors);
        break;
      }
      case Proto::GRAPH: {
        if (!proto.has_g()) fail(what + " is declared as a graph and contains none");
        auto inner = std::make_unique<Graph>(&graph);
        read_graph(*proto.mutable_g(), *inner, depth + 1, function);
        result.data = std::move(inner);
        break;
      }
      case Proto::GRAPHS: {
        std::vector<std::unique_ptr<Graph>> graphs;
        for (auto& one : *proto.mutable_graphs()) {
          graphs.push_back(std::make_unique<Graph>(&graph));
          read_graph(one, *graphs.back(), depth + 1, function);
        }
        result.data = std::move(graphs);
        break;
      }
      case Proto::SPARSE_TENSOR:
      case Proto::SPARSE_TENSORS:
      case Proto::TYPE_PROTO:
      case Proto::TYPE_PROTOS: result.data = OpaqueAttribute{proto.SerializePartialAsString()}; break;
      case Proto::UNDEFINED: fail(what + " has no type and no value");
    }
    return result;
  }

  FunctionDefinition read_function(::onnx::FunctionProto& proto) {
    FunctionDefinition function;
    function.key = {standard_domain(proto.domain()), proto.name(), proto.overload()};
    const std::string outer_where = where_;
    where_ = fmt::format("function {}::{}: ", function.key.domain, function.key.name);
    if (function.key.name.empty()) fail("the function has no name");
    function.doc = proto.doc_string();
    function.metadata = to_map(proto.metadata_props());
    function.attributes.assign(proto.attribute().begin(), proto.attribute().end());
    Graph& body = *function.body;
    for (::onnx::AttributeProto& attribute : *proto.mutable_attribute_proto()) {
      const std::string name = attribute.name();
      // With the deepest nesting as depth, graphs are refused here.
      NodeAttribute value = read_attribute(attribute, body, deepest_nesting, nullptr);
      if (!function.attribute_defaults.emplace(name, std::move(value)).second) {
        fail(fmt::format("attribute `{}` is declared twice", name));
      }
    }
    read_opsets(proto.opset_import(), body);
    for (const std::string& name : proto.input()) body.set_is_input(define(body, name, "function input"), true);
    read_nodes(*proto.mutable_node(), body, 0, &function);
    for (::onnx::ValueInfoProto& info : *proto.mutable_value_info()) {
      if (Value* value = body.find_local(info.name())) read_type(info, *value);
    }
    for (const std::string& name : proto.output()) {
      Value* value = body.find_local(name);
      if (value == nullptr) fail(fmt::format("no node or input of the function defines its output '{}'", name));
      body.add_output(*value);
    }
    try {
      body.topological_sort();
    } catch (const Error& error) {
      fail(error.what());
    }
    proto.clear_domain();
    proto.clear_name();
    proto.clear_overload();
    proto.clear_doc_string();
    proto.clear_metadata_props();
    proto.clear_attribute();
    proto.clear_attribute_proto();
    proto.clear_opset_import();
    proto.clear_input();
    proto.clear_output();
    proto.clear_node();
    proto.clear_value_info();
    function.opaque = proto.SerializePartialAsString();
    where_ = outer_where;
    return function;
  }

  std::filesystem::path folder_;
  std::string source_;
  const Pieces& pieces_;
  std::string where_;  // The prefix of messages, such as "node 'a' (If): ".
  bool initializers_are_inputs_ = false;
  // The symbolic names in the declared shapes of elements of sequences and optionals.
  std::set<std::string> names_of_elements_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
  std::map<std::filesystem::path, std::shared_ptr<const MappedFile>> by_target_;
  std::size_t external_files_ = 0;  // The size of these files in bytes.
  std::size_t external_total_ = 0;  // The size in bytes of the tensors in these files.
};

/// Numbers that stand for protobuf's message types in `wire_fields`, the table of the fields of a model that may
/// contain tensors, including those in subgraphs and functions. 0 is the message of the whole file.
constexpr int model_proto = 0;
constexpr int graph_proto = 1;
constexpr int node_proto = 2;
constexpr int attribute_proto = 3;
constexpr int tensor_proto = 4;
constexpr int function_proto = 5;
constexpr std::array wire_fields = {
    WireField{model_proto, 7, graph_proto},      WireField{model_proto, 25, function_proto},
    WireField{graph_proto, 1, node_proto},       WireField{graph_proto, 5, tensor_proto},
    WireField{function_proto, 7, node_proto},    WireField{function_proto, 11, attribute_proto},
    WireField{node_proto, 5, attribute_proto},   WireField{attribute_proto, 5, tensor_proto},
    WireField{attribute_proto, 6, graph_proto},  WireField{attribute_proto, 10, tensor_proto},
    WireField{attribute_proto, 11, graph_proto}, WireField{tensor_proto, 9, wire_data}};

}  // namespace

Model parse_onnx(std::string_view bytes, const std::filesystem::path& base_folder, std::string name,
                 std::shared_ptr<const void> owner) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw Error(
        fmt::format("{}: the file has {} bytes; a protobuf file holds at most 2 GiB\nSave the weights as external data",
                    name, bytes.size()));
  }
  ::onnx::ModelProto proto;
  auto cut = cut_large_fields(bytes, wire_fields);
  const ProtobufLog log;
  if (!cut || !proto.ParsePartialFromString(cut->rest)) {
    constexpr std::uint32_t graph_field = 7;
    if (const auto size = size_before_truncation(bytes, graph_field)) {
      throw Error(
          fmt::format("{0}: the file is truncated: it has {1} bytes, and its graph ends at byte {2}\n{3}; the "
                      "whole file has {2} bytes or more",
                      name, bytes.size(), *size, fetch_again));
    }
    throw Error(
        fmt::format("{}: this is not an ONNX file, or it is truncated: its {} bytes are not the protobuf of a model, "
                    "or are nested too deeply{}\n{}",
                    name, bytes.size(), log.reason(), fetch_again));
  }
  cut->rest = {};
  const Pieces pieces(std::move(cut->pieces), std::move(owner));
  try {
    Model model = Reader(base_folder, std::move(name), pieces).read(proto);
    check_ports(model);
    check_function_calls(model);
    return model;
  } catch (const Error& error) {
    throw with_next_step(error, "Correct this in the program that wrote the model, and export the model again");
  }
}

Model read_onnx(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  return parse_onnx(file->view(), folder, path.string(), file);
}

}  // namespace graft::onnx
