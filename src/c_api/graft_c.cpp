// Implements the C functions of graft/graft_c.h with the operator interface.
#include "graft/graft_c.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "c_api/empty_kernel.hpp"
#include "c_api/in_threads.hpp"
#include "graft/operator/registry.hpp"
#include "operator_library/load.hpp"
#include "operator_library/timings.hpp"
#include "ops/operator_case.hpp"
#include "ops/random_cases.hpp"

struct graft_operator {  // NOLINT(readability-identifier-naming): a name of C
  std::shared_ptr<const graft::Operator> op;
};

namespace graft {
namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

void check(const Status& status) {
  if (!status.ok()) throw std::invalid_argument(status.message());
}

/// Calls `f` and returns its result. If `f` throws, stores the exception as the last error and returns `failed`.
template <class Result, class F>
Result guarded(Result failed, F&& f) noexcept {
  try {
    return f();
  } catch (const std::exception& error) {
    last_error() = error.what();
  } catch (...) {
    last_error() = "an exception of unknown type was thrown";
  }
  return failed;
}

/// Returns `pointer`. Throws if it is null; `what` is its name in the message.
template <class T>
T* require(T* pointer, const char* what) {
  if (pointer == nullptr) throw std::invalid_argument(std::string(what) + " is a null pointer");
  return pointer;
}

const Operator& operator_of(const graft_operator* op) { return *require(op, "the operator")->op; }

Layout layout_of(std::string_view name) {
  for (const Layout layout : {Layout::linear, Layout::hwc8, Layout::chw32}) {
    if (to_string(layout) == name) return layout;
  }
  throw std::invalid_argument("layout '" + std::string(name) + "' is unknown; the layouts are linear, hwc8 and chw32");
}

TensorDesc desc_of(const graft_tensor& tensor) {
  TensorDesc desc;
  if (tensor.dtype == nullptr || tensor.layout == nullptr)
    throw std::invalid_argument(
        "the dtype or the layout of a tensor is a null pointer; set both, for example to \"f32\" and \"linear\"");
  const auto dtype = parse_dtype(tensor.dtype);
  if (!dtype) throw std::invalid_argument(std::string("there is no type ") + tensor.dtype);
  desc.dtype = *dtype;
  desc.layout = layout_of(tensor.layout);
  if (tensor.rank < 0 || tensor.rank > GRAFT_MAX_RANK) {
    throw std::invalid_argument("a tensor has rank " + std::to_string(tensor.rank) +
                                "; the rank must be between 0 and 8");
  }
  check(Extents::make({tensor.extents, tensor.extents + tensor.rank}, desc.extents));
  return desc;
}

void check_list(const graft_tensor* tensors, std::int32_t count, const char* what) {
  if (count < 0)
    throw std::invalid_argument(std::string("the number of ") + what + " is " + std::to_string(count) +
                                "; it must be at least 0");
  if (count > 0) require(tensors, what);
}

/// The arguments of a call of the C interface, converted to the types of the operator interface.
struct Call {
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  std::vector<const void*> input_data;
  std::vector<void*> output_data;

  explicit Call(const graft_call* given) {
    const graft_call& call = *require(given, "the call");
    check_list(call.inputs, call.input_count, "inputs");
    check_list(call.outputs, call.output_count, "outputs");
    for (std::int32_t i = 0; i < call.input_count; ++i) {
      inputs.push_back(desc_of(call.inputs[i]));
      input_data.push_back(call.inputs[i].data);
    }
    for (std::int32_t i = 0; i < call.output_count; ++i) {
      outputs.push_back(desc_of(call.outputs[i]));
      output_data.push_back(call.outputs[i].data);
    }
  }
  [[nodiscard]] Problem problem() const { return {inputs, outputs}; }
  /// Throws if a tensor has elements and no memory.
  void check_memory() const {
    const auto check_tensors = [](const auto& descs, const auto& data, const char* what) {
      for (std::size_t i = 0; i < descs.size(); ++i) {
        if (data[i] != nullptr || descs[i].storage_bytes() == 0) continue;
        throw std::invalid_argument("the data of " + std::string(what) + " " + std::to_string(i) +
                                    " is a null pointer");
      }
    };
    check_tensors(inputs, input_data, "input");
    check_tensors(outputs, output_data, "output");
  }
  [[nodiscard]] Buffers buffers(void* workspace) const { return {input_data, output_data, workspace}; }
};

/// Returns the types that port `index` may have if the ports before it have the types in `found`, for messages.
std::string allowed_dtypes(const OperatorType& type, std::span<const DType> found, std::size_t index) {
  std::vector<std::string_view> allowed;
  for (const TypeRow& row : type.type_rows) {
    bool matches = type.format_of(row, found.size(), index).layout == Layout::linear;
    for (std::size_t i = 0; matches && i < index; ++i) {
      matches = type.format_of(row, found.size(), i) == Format(found[i]);
    }
    const std::string_view name = to_string(type.format_of(row, found.size(), index).dtype);
    if (matches && std::find(allowed.begin(), allowed.end(), name) == allowed.end()) allowed.push_back(name);
  }
  std::string text;
  for (const std::string_view name : allowed) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

std::vector<DType> output_dtypes(const OperatorType& type, std::span<const DType> inputs) {
  if (auto outputs = type.output_dtypes(inputs)) return std::move(*outputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string allowed = allowed_dtypes(type, inputs, i);
    const std::string_view found = to_string(inputs[i]);
    if ((", " + allowed + ", ").find(", " + std::string(found) + ", ") != std::string::npos) continue;
    throw std::invalid_argument(std::string(type.name) + ": input " + type.input_name(i) + " has type " +
                                std::string(found) + "; the supported types are " + allowed);
  }
  throw std::invalid_argument(std::string(type.name) +
                              " does not support this combination of input types; `graft ops " +
                              std::string(type.name) + "` lists the supported types");
}

void check_input_count(const OperatorType& type, std::size_t count) {
  if (count >= type.required_input_count() && count <= type.most_inputs()) return;
  throw std::invalid_argument(std::string(type.name) + " takes " + type.input_count_text() + " inputs, found " +
                              std::to_string(count));
}

void write_desc(const TensorDesc& desc, graft_tensor& tensor) {
  tensor.dtype = to_string(desc.dtype).data();  // to_string returns a literal, which ends in a zero byte.
  tensor.layout = to_string(desc.layout).data();
  tensor.rank = desc.extents.rank();
  std::copy(desc.extents.begin(), desc.extents.end(), std::begin(tensor.extents));
}

const char* name_of(Dim::Kind kind) {
  switch (kind) {
    case Dim::Kind::add: return "add";
    case Dim::Kind::subtract: return "subtract";
    case Dim::Kind::multiply: return "multiply";
    case Dim::Kind::minimum: return "min";
    case Dim::Kind::maximum: return "max";
    case Dim::Kind::floor_divide: return "floor_divide";
    case Dim::Kind::ceil_divide: return "ceil_divide";
    case Dim::Kind::equal: return "equal";
    case Dim::Kind::less: return "less";
    case Dim::Kind::data_size: return "data_size";
    case Dim::Kind::constant:
    case Dim::Kind::symbol: break;
  }
  throw std::logic_error("a constant or a symbol has no operands");
}

nlohmann::ordered_json to_json(const Dim& dim) {
  if (dim.is_constant()) return dim.value();
  if (dim.kind() == Dim::Kind::symbol) return dim.name();
  return nlohmann::ordered_json::array({name_of(dim.kind()), to_json(dim.left()), to_json(dim.right())});
}

nlohmann::ordered_json to_json(const AttributeInfo& info) {
  nlohmann::ordered_json value;
  if (!info.required) std::visit([&](const auto& plain) { value = plain; }, info.default_value);
  return {{"name", info.name},       {"type", to_string(info.type)},    {"default", value},
          {"choices", info.choices}, {"range", info.range.to_string()}, {"doc", info.doc}};
}

const char* name_of(PortKind kind) {
  switch (kind) {
    case PortKind::input: return "input";
    case PortKind::optional_input: return "optional_input";
    case PortKind::variadic_input: return "variadic_input";
    case PortKind::shape_input: return "shape_input";
    case PortKind::output: return "output";
    case PortKind::size_output: return "size_output";
  }
  throw std::logic_error("a port has an unknown kind");
}

nlohmann::ordered_json to_json(const OperatorType& type, std::string_view function) {
  nlohmann::ordered_json result{{"function", function},
                                {"name", type.name},
                                {"doc", type.doc},
                                {"source", type.source},
                                {"attributes", nlohmann::ordered_json::array()},
                                {"ports", nlohmann::ordered_json::array()},
                                {"rows", nlohmann::ordered_json::array()}};
  for (const AttributeInfo& info : type.attributes) result["attributes"].push_back(to_json(info));
  for (const Port& port : type.ports) {
    result["ports"].push_back(
        {{"name", port.name}, {"kind", name_of(port.kind)}, {"shape", port.shape}, {"doc", port.doc}});
  }
  for (const TypeRow& row : type.type_rows) {
    nlohmann::ordered_json dtypes = nlohmann::ordered_json::array();
    bool is_linear = true;
    for (const Format& format : std::span(row.formats).first(row.count)) {
      is_linear = is_linear && format.layout == Layout::linear;
      dtypes.push_back(to_string(format.dtype));
    }
    if (is_linear) result["rows"].push_back(dtypes);
  }
  return result;
}

/// Returns the folder names of the operators in ops.inc, in the order of linked_operators().
std::vector<std::string> function_names() {
  std::vector<std::string> names;
  std::istringstream list(GRAFT_OPERATOR_FOLDERS);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

/// Returns whether a JSON value contains only integers or booleans. Without this check a fraction would be truncated
/// silently.
bool is_integer(const nlohmann::ordered_json& value) {
  if (value.is_array())
    return std::all_of(value.begin(), value.end(), [](const auto& each) { return is_integer(each); });
  return value.is_number_integer() || value.is_boolean();
}

/// Checks the number of tensors. Types and shapes are not checked here, but in graft_workspace_bytes and
/// graft_cuda_variants, which programs call once instead of before each run.
void check_counts(const OperatorType& type, const Call& call) {
  if (call.inputs.empty() || call.inputs.size() > type.most_inputs() || call.outputs.size() != type.output_count()) {
    throw std::invalid_argument(std::string(type.name) + " has at most " + std::to_string(type.most_inputs()) +
                                " inputs and has " + std::to_string(type.output_count()) + " outputs; found " +
                                std::to_string(call.inputs.size()) + " and " + std::to_string(call.outputs.size()));
  }
}

AttributeValue to_attribute(const AttributeInfo& info, const nlohmann::ordered_json& value) {
  const bool wants_integer = info.type == AttributeType::integer || info.type == AttributeType::integers;
  if (wants_integer && !is_integer(value)) {
    throw std::invalid_argument(
        "attribute `" + std::string(info.name) + "` is " + value.dump() +
        (info.type == AttributeType::integers ? "; it must be a list of integers" : "; it must be an integer"));
  }
  switch (info.type) {
    case AttributeType::float_number:
      // JSON has no infinities, so they are strings.
      if (value == "inf" || value == "-inf") {
        return std::copysign(std::numeric_limits<float>::infinity(), value == "inf" ? 1.F : -1.F);
      }
      return value.get<float>();
    case AttributeType::integer: return value.get<std::int64_t>();
    case AttributeType::text: return value.get<std::string>();
    case AttributeType::float_numbers: return value.get<std::vector<float>>();
    case AttributeType::integers: return value.get<std::vector<std::int64_t>>();
  }
  throw std::invalid_argument("attribute `" + std::string(info.name) + "` has an unknown type");
}

std::shared_ptr<const Operator> make_from_json(const char* name, const char* text) {
  const OperatorType* type = find_operator(require(name, "the name of the operator"));
  if (type == nullptr)
    throw std::invalid_argument(std::string("there is no operator ") + name + "; `graft ops` lists the operators");
  const nlohmann::ordered_json object = nlohmann::ordered_json::parse(text == nullptr ? "{}" : text);
  ops::Attributes attributes;
  for (const auto& [key, value] : object.items()) {
    const AttributeInfo* info = type->find_attribute(key);
    if (info == nullptr) throw std::invalid_argument(std::string(name) + " has no attribute `" + key + "`");
    attributes.emplace_back(key, to_attribute(*info, value));
  }
  for (const AttributeInfo& info : type->attributes) {
    if (info.required && !object.contains(std::string(info.name))) {
      throw std::invalid_argument(std::string(name) + " needs attribute `" + std::string(info.name) +
                                  "`, which is not set");
    }
  }
  return ops::make_operator(*type, attributes);
}

nlohmann::ordered_json to_json(std::string_view port, const TensorDesc& desc) {
  return {{"port", port},
          {"dtype", to_string(desc.dtype)},
          {"layout", to_string(desc.layout)},
          {"shape", std::vector(desc.extents.begin(), desc.extents.end())}};
}

/// Returns the name of a timed case, such as "LeakyReLU f16 1x64x56x56 alpha=0.1". It contains the inputs, each with
/// its type if that differs from the first input's, and the attributes that differ from their defaults, except the
/// scales of i8.
std::string name_of(const OperatorType& type, const Operator& op, const std::vector<TensorDesc>& inputs) {
  std::string name(type.name);
  for (const TensorDesc& desc : inputs) {
    const bool is_first = &desc == inputs.data();
    const bool as_first = !is_first && desc.dtype == inputs[0].dtype && desc.layout == inputs[0].layout;
    name += (is_first ? " " : ", ") + (as_first ? to_string(desc.extents) : to_string(desc));
  }
  for (const AttributeInfo& info : type.attributes) {
    const auto value = op.get(info.name);
    if (!value || *value == info.default_value || info.name.ends_with("_scale")) continue;
    name += " " + std::string(info.name) + "=" + to_string(*value);
  }
  return name;
}

nlohmann::ordered_json to_json(const OperatorType& type, const ops::TimedCase& timed) {
  const auto op = ops::make_operator(type, timed.attributes);
  const std::vector<TensorDesc> outputs = ops::output_descs(*op, timed.inputs);
  check(op->check({timed.inputs, outputs}));
  nlohmann::ordered_json attributes = nlohmann::ordered_json::object();
  for (const AttributeInfo& info : type.attributes) {
    const auto value = op->get(info.name);
    if (value) std::visit([&](const auto& plain) { attributes[std::string(info.name)] = plain; }, *value);
  }
  nlohmann::ordered_json result{{"name", name_of(type, *op, timed.inputs)},
                                {"operator", type.name},
                                {"attributes", attributes},
                                {"inputs", nlohmann::ordered_json::array()},
                                {"outputs", nlohmann::ordered_json::array()},
                                {"to_reach", {{"of_copy", timed.of_copy}, {"of_eager", timed.of_eager}}},
                                {"operations", timed.operations},
                                {"choose_variant", type.timed_variants}};
  for (std::size_t i = 0; i < timed.inputs.size(); ++i) {
    result["inputs"].push_back(to_json(type.input_name(i), timed.inputs[i]));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    result["outputs"].push_back(to_json(type.ports[type.input_count() + i].name, outputs[i]));
  }
  return result;
}

/// Returns the timed cases of the linked operators, followed by those of the operators of loaded libraries.
std::vector<ops::OperatorTimings> all_timings() {
  std::vector<ops::OperatorTimings> all = ops::operator_timings();
  const std::vector<ops::OperatorTimings> loaded = library_timings();
  all.insert(all.end(), loaded.begin(), loaded.end());
  return all;
}

}  // namespace
}  // namespace graft

const char* graft_version() { return GRAFT_VERSION; }

int graft_has_cuda() { return GRAFT_WITH_CUDA; }

const char* graft_last_error() { return graft::last_error().c_str(); }

graft_operator* graft_operator_create(const char* name, const char* attributes) {
  return graft::guarded<graft_operator*>(nullptr, [&] {
#if GRAFT_WITH_CUDA
    graft::register_cuda_kernels();
#endif
    return std::make_unique<graft_operator>(graft_operator{graft::make_from_json(name, attributes)}).release();
  });
}

const char* graft_definitions(const char* file) {
  thread_local std::string text;
  return graft::guarded<const char*>(nullptr, [&] {
    const graft::OperatorLibrary* library = file == nullptr ? nullptr : &graft::load_operator_library(file);
    const std::span<const graft::OperatorType* const> types =
        library == nullptr ? graft::linked_operators() : std::span(library->operators);
    const std::vector<std::string> names =
        library == nullptr ? graft::function_names() : graft::operator_folders(*library);
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < types.size(); ++i) list.push_back(graft::to_json(*types[i], names.at(i)));
    text = list.dump();
    return text.c_str();
  });
}

int graft_infer_outputs(const graft_operator* op, const graft_tensor* inputs, std::int32_t input_count,
                        graft_tensor* outputs, std::int32_t output_count) {
  return graft::guarded(1, [&] {
    const graft::Operator& used = graft::operator_of(op);
    const graft::OperatorType& type = used.type();
    const graft_call call{inputs, input_count, nullptr, 0};
    const graft::Call parsed(&call);
    graft::check_list(outputs, output_count, "outputs");
    graft::check_input_count(type, parsed.inputs.size());
    std::vector<graft::DType> dtypes;
    for (const graft::TensorDesc& desc : parsed.inputs) dtypes.push_back(desc.dtype);
    const std::vector<graft::DType> found_dtypes = graft::output_dtypes(type, dtypes);
    const std::size_t tensors = parsed.inputs.size() - type.shape_input_count();
    std::vector<graft::Extents> shape_values;
    for (const graft::TensorDesc& desc : std::span(parsed.inputs).subspan(tensors)) {
      shape_values.push_back(desc.extents);
    }
    std::vector<graft::Extents> found;
    graft::check(graft::infer_extents(used, std::span(parsed.inputs).first(tensors), found, shape_values));
    if (found.size() != static_cast<std::size_t>(output_count)) {
      throw std::invalid_argument(std::string(type.name) + " has " + std::to_string(found.size()) + " outputs");
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      graft::write_desc({.dtype = found_dtypes[i], .layout = graft::Layout::linear, .extents = found[i]}, outputs[i]);
    }
    return 0;
  });
}

const char* graft_infer_symbolic(const graft_operator* op, const char* shapes) {
  thread_local std::string text;
  return graft::guarded<const char*>(nullptr, [&] {
    const graft::Operator& used = graft::operator_of(op);
    std::vector<graft::Shape> inputs;
    for (const auto& sizes : nlohmann::json::parse(graft::require(shapes, "the JSON text of the shapes"))) {
      graft::Shape& shape = inputs.emplace_back();
      for (const auto& size : sizes) {
        shape.push_back(size.is_string() ? graft::Dim::symbol(size.get<std::string>())
                                         : graft::Dim(size.get<std::int64_t>()));
      }
    }
    graft::check_input_count(used.type(), inputs.size());
    std::vector<graft::Shape> outputs;
    graft::check(used.infer_shapes(inputs, outputs));
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const graft::Shape& shape : outputs) {
      nlohmann::ordered_json& sizes = list.emplace_back(nlohmann::ordered_json::array());
      for (const graft::Dim& dim : shape) sizes.push_back(graft::to_json(dim));
    }
    text = list.dump();
    return text.c_str();
  });
}

const char* graft_layouts(const graft_operator* op, const char* dtype, const char* layout, std::int32_t rank) {
  thread_local std::string text;
  return graft::guarded<const char*>(nullptr, [&] {
    const graft::Operator& used = graft::operator_of(op);
    const auto parsed = graft::parse_dtype(graft::require(dtype, "the type"));
    if (!parsed) throw std::invalid_argument(std::string("there is no type ") + dtype);
    const graft::Format first(*parsed, graft::layout_of(graft::require(layout, "the layout")));
    const graft::OperatorType& type = used.type();
    std::vector<int> ranks(type.input_count(), -1);  // the ranks of the other inputs are unknown
    ranks.at(0) = rank;
    nlohmann::ordered_json list;
    for (const graft::TypeRow& row : type.type_rows) {
      if (!(row.formats[0] == first) || !used.accepts(row, ranks)) continue;
      for (const graft::Format& format : std::span(row.formats).first(row.count)) {
        list.push_back(graft::to_string(format.layout));
      }
      break;
    }
    text = list.dump();
    return text.c_str();
  });
}

const char* graft_function(const graft_operator* op, const char* dtype, std::int32_t rank, std::int32_t input_count) {
  thread_local std::string text;
  return graft::guarded<const char*>(nullptr, [&] {
    const graft::Operator& used = graft::operator_of(op);
    const auto parsed = graft::parse_dtype(graft::require(dtype, "the type"));
    if (!parsed) throw std::invalid_argument(std::string("there is no type ") + dtype);
    std::optional<graft::Function> function;
    const graft::FunctionInputs inputs{
        .dtype = *parsed, .count = static_cast<std::size_t>(std::max(input_count, 0)), .rank = rank};
    if (graft::Status status = used.function(inputs, function); !status.ok()) {
      throw std::invalid_argument(std::string(used.type().name) + ": " + status.message());
    }
    nlohmann::ordered_json json;
    if (function) json = {{"name", function->name}, {"body", function->body}};
    text = json.dump();
    return text.c_str();
  });
}

void graft_operator_destroy(graft_operator* op) { const std::unique_ptr<graft_operator> owned(op); }

std::int64_t graft_storage_bytes(const graft_tensor* tensor) {
  return graft::guarded<std::int64_t>(
      -1, [&] { return graft::desc_of(*graft::require(tensor, "the tensor")).storage_bytes(); });
}

std::int64_t graft_workspace_bytes(const graft_operator* op, const graft_call* call) {
  return graft::guarded<std::int64_t>(-1, [&] {
    const graft::Operator& used = graft::operator_of(op);
    const graft::Call parsed(call);
    graft::check(used.check(parsed.problem()));
    return static_cast<std::int64_t>(used.workspace(parsed.problem()));
  });
}

const char* graft_cuda_variants(const graft_operator* op, const graft_call* call) {
  thread_local std::string names;
  return graft::guarded<const char*>(nullptr, [&] {
    const graft::Operator& used = graft::operator_of(op);
    const graft::Call parsed(call);
    graft::check(used.check(parsed.problem()));
    names.clear();
    for (const graft::VariantInfo& variant : used.cuda_variants(parsed.problem())) {
      if (variant.fits.ok()) names.append(names.empty() ? "" : ",").append(variant.name);
    }
    return names.c_str();
  });
}

int graft_run_cpu(const graft_operator* op, const graft_call* call, std::int32_t threads) {
  return graft::guarded(1, [&] {
    const graft::Operator& used = graft::operator_of(op);
    const graft::Call parsed(call);
    parsed.check_memory();
    graft::CpuContext context;
    context.parallel_for = [threads](std::int64_t count, const graft::CpuContext::Body& body) {
      graft::in_threads(count, threads, body);
    };
    graft::check(used.run_cpu(parsed.problem(), parsed.buffers(nullptr), context));
    return 0;
  });
}

int graft_run_cuda(const graft_operator* op, const graft_call* call, void* workspace, void* stream,
                   const char* variant) {
  return graft::guarded(1, [&] {
    const graft::Operator& used = graft::operator_of(op);
    const graft::Call parsed(call);
    const graft::CudaContext context{static_cast<CUstream_st*>(stream), variant == nullptr ? "" : variant};
    graft::check_counts(used.type(), parsed);
    parsed.check_memory();
    graft::check(used.run_cuda(parsed.problem(), parsed.buffers(workspace), context));
    return 0;
  });
}

int graft_run_empty([[maybe_unused]] void* stream) {
  return graft::guarded(1, [&] {
#if GRAFT_WITH_CUDA
    graft::check(graft::run_empty_kernel(static_cast<CUstream_st*>(stream)));
    return 0;
#else
    throw std::invalid_argument(
        "this build of Graft has no CUDA kernels; build it with nvcc and without -DGRAFT_CUDA=OFF");
    return 1;
#endif
  });
}

int graft_load_operators(const char* file) {
  return graft::guarded(1, [&] {
    static_cast<void>(graft::load_operator_library(graft::require(file, "the file")));
    static_cast<void>(graft::library_timings());
    return 0;
  });
}

const char* graft_timed_cases() {
  thread_local std::string text;
  return graft::guarded<const char*>(nullptr, [] {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const graft::ops::OperatorTimings& each : graft::all_timings()) {
      for (const graft::ops::TimedCase& timed : each.timings) list.push_back(graft::to_json(*each.type, timed));
    }
    text = list.dump();
    return text.c_str();
  });
}

const char* graft_random_cases(std::uint64_t seed, std::int32_t count) {
  thread_local std::string text;
  return graft::guarded<const char*>(nullptr, [&] {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const graft::ops::OperatorTimings& each : graft::all_timings()) {
      if (each.draw == nullptr) continue;
      for (const graft::ops::TimedCase& timed : graft::ops::random_cases(*each.type, each.draw, seed, count)) {
        list.push_back(graft::to_json(*each.type, timed));
      }
    }
    text = list.dump();
    return text.c_str();
  });
}
