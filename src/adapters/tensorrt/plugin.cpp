// Implements the IPluginV3 interfaces of TensorRT for any Operator.
#include "adapters/tensorrt/plugin.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <string_view>
#include <utility>

#include "adapters/tensorrt/convert.hpp"
#include "adapters/tensorrt/loaded_library.hpp"
#include "adapters/tensorrt/logger.hpp"
#include "core/hash.hpp"

namespace graft::tensorrt {
namespace {

constexpr std::int32_t success = 0;
constexpr std::int32_t failure = -1;

Status too_many_tensors() {
  return unsupported("the layer has more than " + std::to_string(TypeRow::max_ports) +
                     " inputs and outputs, which Graft does not support");
}

/// The descriptions of the inputs and outputs of one call, held on the stack so that enqueue allocates no memory.
class Tensors {
 public:
  Status read(const nvinfer1::PluginTensorDesc* inputs, std::size_t input_count,
              const nvinfer1::PluginTensorDesc* outputs, std::size_t output_count) {
    if (input_count + output_count > descs_.size()) return too_many_tensors();
    input_count_ = input_count;
    output_count_ = output_count;
    for (std::size_t i = 0; i < input_count + output_count; ++i) {
      const auto& desc = i < input_count ? inputs[i] : outputs[i - input_count];
      if (Status status = from_tensorrt(desc, descs_[i]); !status.ok()) return status;
    }
    return {};
  }

  void set_output_extents(std::span<const Extents> extents) {
    for (std::size_t i = 0; i < std::min(extents.size(), output_count_); ++i) {
      descs_[input_count_ + i].extents = extents[i];
    }
  }

  [[nodiscard]] std::span<const TensorDesc> all() const { return {descs_.data(), input_count_ + output_count_}; }
  [[nodiscard]] Problem problem() const { return {all().first(input_count_), all().subspan(input_count_)}; }

 private:
  std::array<TensorDesc, TypeRow::max_ports> descs_;
  std::size_t input_count_ = 0;
  std::size_t output_count_ = 0;
};

/// The inputs of a call in the operator's order, held on the stack so that enqueue allocates no memory.
template <class T>
class ArrangedInputs {
 public:
  ArrangedInputs(const InputOrder& order, const T* inputs, std::size_t count, const T& left_out)
      : inputs_(order.arrange<T>(std::span(inputs, count), left_out, storage_)) {}
  ArrangedInputs(const ArrangedInputs&) = delete;
  ArrangedInputs& operator=(const ArrangedInputs&) = delete;
  [[nodiscard]] const T* data() const { return inputs_.data(); }
  [[nodiscard]] std::size_t size() const { return inputs_.size(); }
  [[nodiscard]] std::span<const T> span() const& { return inputs_; }
  std::span<const T> span() && = delete;  // Deleted, because the span may point into this object.

 private:
  std::array<T, TypeRow::max_ports> storage_;
  std::span<const T> inputs_;
};

/// Returns the description of an input that a node omits although later inputs are present: no elements, and the type
/// of the first input.
nvinfer1::PluginTensorDesc left_out(const nvinfer1::PluginTensorDesc* inputs, std::size_t count) {
  nvinfer1::PluginTensorDesc desc{};
  desc.dims.nbDims = 1;
  desc.scale = -1;
  if (count > 0) desc.type = inputs[0].type;
  return desc;
}
nvinfer1::DynamicPluginTensorDesc left_out(const nvinfer1::DynamicPluginTensorDesc* inputs, std::size_t count) {
  nvinfer1::DynamicPluginTensorDesc range{};
  range.desc = left_out(count > 0 ? &inputs[0].desc : nullptr, count);
  range.min = range.max = range.opt = range.desc.dims;
  return range;
}
template <class Desc>
ArrangedInputs<Desc> arranged(const InputOrder& order, const Desc* inputs, std::size_t count) {
  return {order, inputs, count, left_out(inputs, count)};
}

/// Returns an error if the number of inputs is wrong. `found` does not include shape inputs, which TensorRT counts
/// separately.
Status check_input_count(const PluginSchema& schema, const InputOrder& order, std::size_t found) {
  const OperatorType& type = *schema.type;
  const std::size_t least = order.is_own() ? type.required_input_count() : order.least();
  const std::size_t most = order.is_own() ? type.most_inputs() : order.most();
  found += type.shape_input_count();
  if (found >= least && found <= most) return {};
  const std::string names = order.is_own() ? "" : ": " + order.to_string(type);
  return invalid_argument(schema.name + " takes " + (least == most ? "" : std::to_string(least) + " to ") +
                          std::to_string(most) + " inputs, found " + std::to_string(found) + names);
}

bool has_known_sizes(const nvinfer1::PluginTensorDesc* descs, std::size_t count) {
  return std::all_of(descs, descs + count, [](const nvinfer1::PluginTensorDesc& desc) {
    return std::all_of(desc.dims.d, desc.dims.d + std::max(desc.dims.nbDims, 0),
                       [](std::int64_t extent) { return extent >= 0; });
  });
}

/// Stores the descriptions of the inputs and outputs in `tensors`. The extents of the outputs are inferred from the
/// inputs; sizes that depend on data get their upper bounds. Allocates memory.
Status read_inferred(const Operator& op, const nvinfer1::PluginTensorDesc* inputs, std::size_t input_count,
                     const nvinfer1::PluginTensorDesc* outputs, std::size_t output_count, Tensors& tensors) {
  std::vector<nvinfer1::PluginTensorDesc> known(outputs, outputs + output_count);
  for (nvinfer1::PluginTensorDesc& desc : known) {
    for (std::int64_t& extent : desc.dims.d) extent = std::max<std::int64_t>(extent, 0);
  }
  if (Status status = tensors.read(inputs, input_count, known.data(), output_count); !status.ok()) return status;
  std::vector<Extents> extents;
  if (Status status = infer_extents(op, tensors.problem().inputs, extents); !status.ok()) return status;
  tensors.set_output_extents(extents);
  return check_sizes(op.type(), tensors.problem());
}

/// Stores the descriptions of the inputs and outputs in `tensors`. If sizes of outputs depend on data, for which
/// TensorRT passes -1 or bounds, they get their upper bounds.
Status read_with_room(const Operator& op, const nvinfer1::PluginTensorDesc* inputs, std::size_t input_count,
                      const nvinfer1::PluginTensorDesc* outputs, std::size_t output_count, Tensors& tensors) {
  if (op.type().size_output_count() > 0) {
    return read_inferred(op, inputs, input_count, outputs, output_count, tensors);
  }
  Status status = tensors.read(inputs, input_count, outputs, output_count);
  return status.ok() ? check_sizes(op.type(), tensors.problem()) : status;
}

bool has_groups_of_channels(const TypeRow& row) {
  return std::any_of(row.formats.begin(), row.formats.begin() + static_cast<std::ptrdiff_t>(row.count),
                     [](const Format& format) { return format.layout == Layout::chw32; });
}

/// Returns whether to offer int8 in groups of 32 channels. TensorRT-RTX 1.7 selects this layout whenever a plugin
/// offers it, and stores linear tensors in between: every plugin gets one kernel before it and one after it that only
/// move elements, even between two adjacent plugins. RTX is therefore offered the linear layout only.
bool offers_groups_of_channels() {
  static const bool is_rtx = is_loaded("libtensorrt_rtx") && !is_loaded("libnvinfer.so");
  return !is_rtx;
}

/// Returns the type that TensorRT requires for outputs in declareSizeTensor: i32 up to 10.14 (NVIDIA's sample of a
/// NonZero plugin), i64 from 10.15 on and in TensorRT-RTX.
DType size_dtype() {
  constexpr int first_with_64_bits = 101500;
  const int version = tensorrt_version();
  return version != 0 && version < first_with_64_bits ? DType::i32 : DType::i64;
}

/// Stores the descriptions of the inputs and outputs in `tensors` while an engine is built, when TensorRT passes a
/// range for each dynamic dimension. `pick` is the member (min, opt or max) from which such a dimension gets its size.
Status read_range(const Operator& op, const nvinfer1::DynamicPluginTensorDesc* inputs, std::size_t input_count,
                  const nvinfer1::DynamicPluginTensorDesc* outputs, std::size_t output_count,
                  nvinfer1::Dims nvinfer1::DynamicPluginTensorDesc::*pick, Tensors& tensors) {
  std::array<nvinfer1::PluginTensorDesc, TypeRow::max_ports> descs{};
  if (input_count + output_count > descs.size()) return too_many_tensors();
  for (std::size_t i = 0; i < input_count + output_count; ++i) {
    const auto& from = i < input_count ? inputs[i] : outputs[i - input_count];
    descs[i] = from.desc;
    const nvinfer1::Dims& range = from.*pick;
    for (std::int32_t axis = 0; axis < descs[i].dims.nbDims; ++axis) {
      auto& extent = descs[i].dims.d[axis];
      if (extent < 0 && axis < range.nbDims) extent = range.d[axis];
    }
  }
  return read_with_room(op, descs.data(), input_count, descs.data() + input_count, output_count, tensors);
}

/// Sets `bytes` to the workspace for the largest sizes. TensorRT reserves this workspace for all sizes.
Status read_largest_workspace(const Operator& op, const nvinfer1::DynamicPluginTensorDesc* inputs,
                              std::size_t input_count, const nvinfer1::DynamicPluginTensorDesc* outputs,
                              std::size_t output_count, std::size_t& bytes) {
  Tensors tensors;
  Status status =
      read_range(op, inputs, input_count, outputs, output_count, &nvinfer1::DynamicPluginTensorDesc::max, tensors);
  if (status.ok()) bytes = op.workspace(tensors.problem());
  return status;
}

/// Returns copies of `descs` in which the optimum is 0 for every dynamic dimension whose range begins at 0. Such a
/// dimension may depend on data, and all of them can be 0 at the same time. TensorRT does not mark these dimensions in
/// any other way: in TensorRT-RTX 1.7.1, sizes of inputs that come from a NonZero through Gather, GatherND or Concat
/// have ranges from 0, and isSizeTensor() is false for each of them in getOutputShapes. The range of a profile may
/// begin at 0 as well, and the range of a sum of such sizes may begin above 0.
std::vector<nvinfer1::DynamicPluginTensorDesc> without_data(const nvinfer1::DynamicPluginTensorDesc* descs,
                                                            std::size_t count) {
  std::vector<nvinfer1::DynamicPluginTensorDesc> result(descs, descs + count);
  for (nvinfer1::DynamicPluginTensorDesc& desc : result) {
    for (std::int32_t axis = 0; axis < std::min(desc.desc.dims.nbDims, desc.min.nbDims); ++axis) {
      if (desc.desc.dims.d[axis] < 0 && desc.min.d[axis] == 0) desc.opt.d[axis] = 0;
    }
  }
  return result;
}

/// Returns ok, as configurePlugin does, if the operator accepts the largest sizes, the optimum, or the optimum with 0
/// for sizes that depend on data; otherwise returns the last error. The workspace may only be computed for a rank that
/// the operator has accepted, because its code indexes axes.
Status check_some_sizes(const Operator& op, const nvinfer1::DynamicPluginTensorDesc* in, std::size_t inputs,
                        const nvinfer1::DynamicPluginTensorDesc* out, std::size_t outputs) {
  const auto rest_in = without_data(in, inputs);
  const auto rest_out = without_data(out, outputs);
  struct Sizes {
    const nvinfer1::DynamicPluginTensorDesc* in;
    const nvinfer1::DynamicPluginTensorDesc* out;
    nvinfer1::Dims nvinfer1::DynamicPluginTensorDesc::*pick;
  };
  Status status;
  for (const auto& [in_sizes, out_sizes, pick] :
       {Sizes{in, out, &nvinfer1::DynamicPluginTensorDesc::max},
        Sizes{in, out, &nvinfer1::DynamicPluginTensorDesc::opt},
        Sizes{rest_in.data(), rest_out.data(), &nvinfer1::DynamicPluginTensorDesc::opt}}) {
    Tensors tensors;
    status = read_range(op, in_sizes, inputs, out_sizes, outputs, pick, tensors);
    if (status.ok()) status = op.check(tensors.problem());
    if (status.ok()) return status;
  }
  return status;
}

bool is_fixed(const nvinfer1::DynamicPluginTensorDesc* descs, std::int32_t count) {
  return std::all_of(descs, descs + count, [](const nvinfer1::DynamicPluginTensorDesc& desc) {
    const nvinfer1::Dims& dims = desc.desc.dims;
    return std::all_of(dims.d, dims.d + std::max(dims.nbDims, 0), [](std::int64_t extent) { return extent >= 0; });
  });
}

/// Returns the text of an attribute, such as " alpha=0.1", for getMetadataString. A long value, such as the weights of
/// a layer, is replaced with its hash.
std::string attribute_text(const AttributeInfo& info, const AttributeValue& value) {
  constexpr std::size_t longest = 64;
  std::string text = to_string(value);
  if (text.size() > longest) text = "#" + std::to_string(hash_of(text));
  return " " + std::string(info.name) + "=" + text;
}

/// Returns the text of an input order, such as " graft.inputs=x,offset,mask", for getMetadataString; an empty string
/// for the operator's own order.
std::string order_text(const OperatorType& type, const InputOrder& order) {
  return order.is_own() ? "" : std::string(" ") + input_order_field + "=" + order.to_string(type);
}

std::vector<nvinfer1::PluginTensorDesc> descs_of(const nvinfer1::DynamicPluginTensorDesc* descs, std::size_t count) {
  std::vector<nvinfer1::PluginTensorDesc> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(descs[i].desc);
  return result;
}

/// Runs `body`, which returns a Status, and returns `on_success` if the Status is ok. If `body` fails or throws, logs
/// the reason and returns `on_failure`.
template <class Result, class Body>
Result guarded(const PluginSchema& schema, const char* call, Result on_success, Result on_failure,
               Body&& body) noexcept {
  try {
    const Status status = body();
    if (status.ok()) return on_success;
    log_error(("graft plugin " + schema.name + " " + schema.version + ": " + call + ": " + status.message()).c_str());
  } catch (const std::exception& error) {  // No message is composed, because memory may have run out.
    log_error(error.what());
  } catch (...) {
    log_error("graft plugin: an exception of unknown type was thrown");
  }
  return on_failure;
}

/// Logs a warning for bounds of the profile that the operator refuses. Such bounds are not an error, because the bounds
/// of different dimensions need not occur together.
void warn_of_bounds(const PluginSchema& schema, const Operator& op, const nvinfer1::DynamicPluginTensorDesc* in,
                    std::size_t inputs, const nvinfer1::DynamicPluginTensorDesc* out, std::size_t outputs) {
  for (const auto bound : {&nvinfer1::DynamicPluginTensorDesc::min, &nvinfer1::DynamicPluginTensorDesc::max}) {
    Tensors tensors;
    Status status = read_range(op, in, inputs, out, outputs, bound, tensors);
    if (status.ok()) status = op.check(tensors.problem());
    if (status.ok()) continue;
    const char* which = bound == &nvinfer1::DynamicPluginTensorDesc::min ? "smallest" : "largest";
    log_warning(("graft plugin " + schema.name + " " + schema.version + ": the " + which +
                 " sizes of the profile, used together, would be refused at inference: " + status.message())
                    .c_str());
  }
}

}  // namespace

std::int32_t tactic_of(std::string_view variant) {
  return static_cast<std::int32_t>(hash_of(variant) >> 1U | 1U);  // TensorRT requires positive integers.
}

Plugin::Plugin(const PluginSchema& schema, std::unique_ptr<Operator> op, const InputOrder& order)
    : schema_(schema),
      operator_(std::move(op)),
      order_(order),
      input_count_(order.is_own() ? schema.type->input_count() - schema.type->shape_input_count() : order.most()) {}

nvinfer1::IPluginCapability* Plugin::getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept {
  switch (type) {
    case nvinfer1::PluginCapabilityType::kCORE: return static_cast<nvinfer1::IPluginV3OneCore*>(this);
    case nvinfer1::PluginCapabilityType::kBUILD: return static_cast<BuildCapability*>(this);
    case nvinfer1::PluginCapabilityType::kRUNTIME: return static_cast<nvinfer1::IPluginV3OneRuntime*>(this);
  }
  return nullptr;
}

nvinfer1::IPluginV3* Plugin::clone() noexcept {
  nvinfer1::IPluginV3* copy = nullptr;
  guarded(schema_, "clone", success, failure, [&]() -> Status {
    auto made = std::make_unique<Plugin>(schema_, operator_->clone(), order_);
    made->input_count_ = input_count_;
    made->prepared_ = prepared_;
    made->fitting_ = fitting_;
    made->variant_ = variant_;
    made->tactic_ = tactic_;
    made->tactics_ = tactics_;
    copy = made.release();  // From here on TensorRT owns the plugin.
    return {};
  });
  return copy;
}

const char* Plugin::getPluginName() const noexcept { return schema_.name.c_str(); }
const char* Plugin::getPluginVersion() const noexcept { return schema_.version.c_str(); }
const char* Plugin::getPluginNamespace() const noexcept { return schema_.space.c_str(); }
std::int32_t Plugin::getNbOutputs() const noexcept { return static_cast<std::int32_t>(schema_.type->output_count()); }

std::int32_t Plugin::configurePlugin(const nvinfer1::DynamicPluginTensorDesc* given, std::int32_t given_count,
                                     const nvinfer1::DynamicPluginTensorDesc* out, std::int32_t output_count) noexcept {
  return guarded(schema_, "configurePlugin", success, failure, [&]() -> Status {
    const auto count = static_cast<std::size_t>(given_count);
    if (Status status = check_input_count(schema_, order_, count); !status.ok()) return status;
    const auto arranged_inputs = arranged(order_, given, count);
    const nvinfer1::DynamicPluginTensorDesc* in = arranged_inputs.data();
    const std::size_t inputs = arranged_inputs.size();
    const auto outputs = static_cast<std::size_t>(output_count);
    if (Status status = adopt_scales(descs_of(in, inputs), descs_of(out, outputs)); !status.ok()) return status;
    Tensors tensors;
    const bool has_data_sizes = schema_.type->size_output_count() > 0;
    if (is_fixed(in, static_cast<std::int32_t>(inputs)) && (has_data_sizes || is_fixed(out, output_count))) {
      if (Status status =
              read_range(*operator_, in, inputs, out, outputs, &nvinfer1::DynamicPluginTensorDesc::max, tensors);
          !status.ok()) {
        return status;
      }
      if (Status status = operator_->check(tensors.problem()); !status.ok()) return status;
    } else {
      warn_of_bounds(schema_, *operator_, in, inputs, out, outputs);
      // The optimum sizes, with which TensorRT times kernels, occur together. Sizes that depend on data are an
      // exception: the optima of two layers are independent numbers.
      if (Status status =
              read_range(*operator_, in, inputs, out, outputs, &nvinfer1::DynamicPluginTensorDesc::opt, tensors);
          !status.ok()) {
        return status;
      }
      if (Status status = operator_->check(tensors.problem()); !status.ok()) {
        const std::string message = "at the profile's optimum: " + status.message();
        const auto rest_in = without_data(in, inputs);
        const auto rest_out = without_data(out, outputs);
        Tensors rest;
        Status of_rest = read_range(*operator_, rest_in.data(), inputs, rest_out.data(), outputs,
                                    &nvinfer1::DynamicPluginTensorDesc::opt, rest);
        if (of_rest.ok()) of_rest = operator_->check(rest.problem());
        if (!of_rest.ok()) return {status.code(), message};
        log_warning(("graft plugin " + schema_.name + " " + schema_.version + ": " + message).c_str());
      }
    }
    // getWorkspaceSize cannot report an error, and kernels would then write to memory that is not reserved.
    std::size_t bytes = 0;
    if (Status status = read_largest_workspace(*operator_, in, inputs, out, outputs, bytes); !status.ok()) {
      return {status.code(), "the workspace of the profile's largest sizes: " + status.message()};
    }
    input_count_ = count;
    tactics_.clear();
    if (!schema_.type->timed_variants) return {};
    for (const VariantInfo& variant : operator_->cuda_variants(tensors.problem())) {
      if (variant.fits.ok()) tactics_.push_back(tactic_of(variant.name));
    }
    return {};
  });
}

const char* Plugin::getTimingCacheID() noexcept {
  const bool is_made = guarded(schema_, "getTimingCacheID", true, false, [&]() -> Status {
    timing_cache_id_ = "graft " GRAFT_VERSION " " + schema_.name + " " + schema_.version;
    for (const AttributeInfo& info : schema_.type->attributes) {
      timing_cache_id_ += attribute_text(info, operator_->get(info.name).value());
    }
    timing_cache_id_ += order_text(*schema_.type, order_);
    return {};
  });
  return is_made ? timing_cache_id_.c_str() : nullptr;
}

const char* Plugin::getMetadataString() noexcept {
  const bool is_made = guarded(schema_, "getMetadataString", true, false, [&]() -> Status {
    metadata_ = schema_.space + "::" + schema_.name + " " + schema_.version;
    for (const AttributeInfo& info : schema_.type->attributes) {
      const AttributeValue value = operator_->get(info.name).value();
      if (value != info.default_value) metadata_ += attribute_text(info, value);
    }
    metadata_ += order_text(*schema_.type, order_);
    return {};
  });
  return is_made ? metadata_.c_str() : nullptr;
}

Status Plugin::adopt_scales(std::span<const nvinfer1::PluginTensorDesc> inputs,
                            std::span<const nvinfer1::PluginTensorDesc> outputs) {
  const OperatorType& type = *schema_.type;
  std::vector<NamedAttribute> adopted;
  for (std::size_t i = 0; i < inputs.size() + outputs.size(); ++i) {
    const nvinfer1::PluginTensorDesc& desc = i < inputs.size() ? inputs[i] : outputs[i - inputs.size()];
    // The scale is -1 if TensorRT has no scale, and 1 for every i8 tensor of a strongly typed network (observed in
    // TensorRT-RTX 1.7).
    if (desc.type != nvinfer1::DataType::kINT8 || !(desc.scale > 0) || desc.scale == 1) continue;
    const std::size_t port = type.port_of(inputs.size(), i);
    if (port >= type.ports.size()) continue;
    const std::string_view name = type.ports[port].scale;
    const AttributeInfo* info = type.find_attribute(name);
    if (info == nullptr || operator_->get(name) != info->default_value) continue;
    const bool is_list = info->type == AttributeType::float_numbers;
    adopted.push_back({name, is_list ? AttributeValue(std::vector{desc.scale}) : AttributeValue(desc.scale)});
  }
  if (adopted.empty()) return {};
  for (std::size_t port = inputs.size(); port < type.input_count(); ++port) {
    const std::string_view name = type.ports[port].scale;
    const AttributeInfo* info = type.find_attribute(name);
    if (info == nullptr || operator_->get(name) != info->default_value) continue;
    return unsupported("implicit quantization provides no scale for `" + std::string(type.ports[port].name) +
                       "`, whose scale is an attribute of the plugin; set `" + std::string(name) +
                       "`, quantize the model explicitly (`graft quantize`), or keep this layer in f16 or f32");
  }
  return operator_->set(adopted);
}

std::int32_t Plugin::getAliasedInput(std::int32_t output) noexcept {
  std::int32_t aliased = -1;
  guarded(schema_, "getAliasedInput", success, failure, [&]() -> Status {
    const std::optional<std::size_t> input = operator_->aliased_input(static_cast<std::size_t>(output));
    const std::optional<std::size_t> index = input ? order_.index_of(*input, input_count_) : std::nullopt;
    if (index) aliased = static_cast<std::int32_t>(*index);
    return {};
  });
  return aliased;
}

bool Plugin::has_aliased_ports() const noexcept {
  bool found = false;
  guarded(schema_, "getInterfaceInfo", success, failure, [&]() -> Status {
    for (std::size_t output = 0; output < schema_.type->output_count(); ++output) {
      found = found || operator_->aliased_input(output);
    }
    return {};
  });
  return found;
}

Status Plugin::check_inputs(std::size_t given) const {
  if (Status status = check_input_count(schema_, order_, given); !status.ok()) return status;
  const OperatorType& type = *schema_.type;
  for (std::size_t output = 0; output < type.output_count(); ++output) {
    const std::optional<std::size_t> input = operator_->aliased_input(output);
    if (!input || order_.index_of(*input, given)) continue;
    return invalid_argument(std::string(type.name) + ": `" + type.input_name(*input) + "` is absent, but `" +
                            std::string(type.ports[type.input_count() + output].name) +
                            "` shares its memory; connect the input, or give the output its own memory");
  }
  return {};
}

std::int32_t Plugin::getNbTactics() noexcept { return static_cast<std::int32_t>(tactics_.size()); }

std::int32_t Plugin::getValidTactics(std::int32_t* tactics, std::int32_t count) noexcept {
  if (count < 0 || static_cast<std::size_t>(count) > tactics_.size()) return failure;
  std::copy_n(tactics_.begin(), count, tactics);
  return success;
}

std::int32_t Plugin::setTactic(std::int32_t tactic) noexcept {
  return guarded(schema_, "setTactic", success, failure, [&]() -> Status {
    tactic_ = tactic;
    choose_variant();
    return {};
  });
}

void Plugin::choose_variant() {
  variant_ = fitting_.empty() ? "" : fitting_.front();
  for (const std::string& name : fitting_) {
    if (tactic_of(name) == tactic_) variant_ = name;
  }
}

std::int32_t Plugin::getOutputDataTypes(nvinfer1::DataType* output_types, std::int32_t output_count,
                                        const nvinfer1::DataType* input_types,
                                        std::int32_t input_count) const noexcept {
  return guarded(schema_, "getOutputDataTypes", success, failure, [&]() -> Status {
    const auto given = static_cast<std::size_t>(input_count);
    if (Status status = check_inputs(given); !status.ok()) return status;
    const ArrangedInputs arranged_types(order_, input_types, given, input_types[0]);
    std::vector<DType> inputs;
    for (const nvinfer1::DataType each : arranged_types.span()) {
      if (const auto dtype = from_tensorrt(each)) inputs.push_back(*dtype);
    }
    std::string found;
    for (std::int32_t i = 0; i < input_count; ++i) {
      const auto dtype = from_tensorrt(input_types[i]);
      found += (i == 0 ? "" : ", ") + std::string(dtype ? to_string(*dtype) : "a type that Graft does not support");
    }
    const auto outputs = schema_.type->output_dtypes(inputs);
    if (!outputs || outputs->size() != static_cast<std::size_t>(output_count)) {
      return unsupported("the operator does not support inputs of the types " + found + "; `graft ops " +
                         std::string(schema_.type->name) + "` lists the supported types");
    }
    for (std::size_t i = 0; i < outputs->size(); ++i) {
      const bool is_size = schema_.type->ports[schema_.type->input_count() + i].is_size();
      output_types[i] = to_tensorrt(is_size ? size_dtype() : (*outputs)[i]);
    }
    return {};
  });
}

std::int32_t Plugin::getOutputShapes(const nvinfer1::DimsExprs* inputs, std::int32_t input_count,
                                     const nvinfer1::DimsExprs* shape_inputs, std::int32_t shape_input_count,
                                     nvinfer1::DimsExprs* outputs, std::int32_t output_count,
                                     nvinfer1::IExprBuilder& builder) noexcept {
  return guarded(schema_, "getOutputShapes", success, failure, [&]() -> Status {
    const auto given = static_cast<std::size_t>(input_count);
    if (Status status = check_inputs(given); !status.ok()) return status;
    input_count_ = given;  // TensorRT calls getAliasedInput before configurePlugin.
    nvinfer1::DimsExprs empty{};
    empty.nbDims = 1;
    empty.d[0] = builder.constant(0);
    const ArrangedInputs arranged_inputs(order_, inputs, given, empty);
    return infer_shapes(*operator_, arranged_inputs.span(), {shape_inputs, static_cast<std::size_t>(shape_input_count)},
                        {outputs, static_cast<std::size_t>(output_count)}, builder);
  });
}

std::int32_t Plugin::getFormatCombinationLimit() noexcept {
  return std::max(kDEFAULT_FORMAT_COMBINATION_LIMIT, static_cast<std::int32_t>(schema_.type->type_rows.size()));
}

bool Plugin::supportsFormatCombination(std::int32_t position, const nvinfer1::DynamicPluginTensorDesc* in_out,
                                       std::int32_t input_count, std::int32_t output_count) noexcept {
  bool supported = false;
  if (position < 0 || position >= input_count + output_count) return supported;
  guarded(schema_, "supportsFormatCombination", success, failure, [&]() -> Status {
    const OperatorType& type = *schema_.type;
    const auto given = static_cast<std::size_t>(input_count);
    if (Status status = check_input_count(schema_, order_, given); !status.ok()) return status;
    std::vector<int> given_ranks(given, -1);  // The ranks after `position` are unspecified.
    for (std::size_t i = 0; i <= static_cast<std::size_t>(position) && i < given; ++i) {
      given_ranks[i] = in_out[i].desc.dims.nbDims;
    }
    const ArrangedInputs ranks(order_, given_ranks.data(), given, 1);
    for (const TypeRow& row : type.type_rows) {
      bool matches =
          operator_->accepts(row, ranks.span()) && (!has_groups_of_channels(row) || offers_groups_of_channels());
      for (std::size_t i = 0; matches && i <= static_cast<std::size_t>(position); ++i) {
        const nvinfer1::PluginTensorDesc& found = in_out[i].desc;
        const bool is_own = order_.is_own() || i >= given;
        const std::optional<std::size_t> port = is_own ? type.port_of(given, i) : order_.port_of(i);
        if (!port) {  // The operator does not read this input.
          matches = found.format == nvinfer1::TensorFormat::kLINEAR;
          continue;
        }
        const Format allowed = type.ports[*port].is_size() ? Format(size_dtype()) : row.formats[*port];
        matches = found.type == to_tensorrt(allowed.dtype) && found.format == to_tensorrt(allowed.layout);
      }
      supported = supported || matches;
    }
    return {};
  });
  return supported;
}

std::size_t Plugin::getWorkspaceSize(const nvinfer1::DynamicPluginTensorDesc* inputs, std::int32_t input_count,
                                     const nvinfer1::DynamicPluginTensorDesc* outputs,
                                     std::int32_t output_count) const noexcept {
  // If the size cannot be computed, the result is larger than the memory of any device, so that TensorRT fails.
  // configurePlugin has failed for these sizes, and with a workspace of 0 kernels would write to memory that is not
  // reserved.
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  guarded(schema_, "getWorkspaceSize", success, failure, [&]() -> Status {
    const auto given = static_cast<std::size_t>(input_count);
    if (Status status = check_input_count(schema_, order_, given); !status.ok()) return status;
    const auto arranged_inputs = arranged(order_, inputs, given);
    const nvinfer1::DynamicPluginTensorDesc* in = arranged_inputs.data();
    const auto count = static_cast<std::size_t>(output_count);
    if (Status status = check_some_sizes(*operator_, in, arranged_inputs.size(), outputs, count); !status.ok()) {
      return status;
    }
    return read_largest_workspace(*operator_, in, arranged_inputs.size(), outputs, count, bytes);
  });
  return bytes;
}

std::int32_t Plugin::onShapeChange(const nvinfer1::PluginTensorDesc* given, std::int32_t given_count,
                                   const nvinfer1::PluginTensorDesc* out, std::int32_t output_count) noexcept {
  return guarded(schema_, "onShapeChange", success, failure, [&]() -> Status {
    const auto count = static_cast<std::size_t>(given_count);
    if (Status status = check_input_count(schema_, order_, count); !status.ok()) return status;
    const auto arranged_inputs = arranged(order_, given, count);
    const nvinfer1::PluginTensorDesc* in = arranged_inputs.data();
    const std::size_t inputs = arranged_inputs.size();
    const auto outputs = static_cast<std::size_t>(output_count);
    const bool has_known_count = count == input_count_;
    // The data of an earlier layer determine the sizes, which only enqueue receives.
    if (!has_known_sizes(in, inputs)) {
      input_count_ = count;
      prepared_.clear();
      return {};
    }
    Tensors tensors;
    if (Status status = read_with_room(*operator_, in, inputs, out, outputs, tensors); !status.ok()) {
      prepared_.clear();
      return status;
    }
    const std::span<const TensorDesc> all = tensors.all();
    if (has_known_count && std::equal(all.begin(), all.end(), prepared_.begin(), prepared_.end())) return {};
    prepared_.clear();
    if (Status status = adopt_scales({in, inputs}, {out, outputs}); !status.ok()) return status;
    if (Status status = operator_->check(tensors.problem()); !status.ok()) return status;
    input_count_ = count;
    fitting_.clear();
    for (const VariantInfo& variant : operator_->cuda_variants(tensors.problem())) {
      if (variant.fits.ok() && runs_on_current_device(variant.compute).ok()) fitting_.emplace_back(variant.name);
    }
    choose_variant();
    if (Status status = operator_->prepare_cuda(tensors.problem()); !status.ok()) return status;
    prepared_.assign(all.begin(), all.end());
    return {};
  });
}

std::int32_t Plugin::enqueue(const nvinfer1::PluginTensorDesc* input_desc,
                             const nvinfer1::PluginTensorDesc* output_desc, const void* const* inputs,
                             void* const* outputs, void* workspace, cudaStream_t stream) noexcept {
  return guarded(schema_, "enqueue", success, failure, [&]() -> Status {
    const auto descs = arranged(order_, input_desc, input_count_);
    const nvinfer1::PluginTensorDesc* in = descs.data();
    const std::size_t input_count = descs.size();
    const std::size_t output_count = schema_.type->output_count();
    const ArrangedInputs<const void*> addresses(order_, inputs, input_count_, nullptr);
    const Buffers buffers{addresses.span(), {outputs, output_count}, workspace};
    // Shape inputs are not among the inputs; their values only determine the extents of the outputs.
    const bool has_shape_inputs = schema_.type->shape_input_count() > 0;
    Tensors tensors;
    Status status = tensors.read(in, input_count, output_desc, has_shape_inputs ? output_count : 0);
    if (!status.ok()) return status;
    const std::span<const TensorDesc> known = prepared_;
    const std::span<const TensorDesc> found = tensors.all();
    if (known.size() == input_count + output_count && std::equal(found.begin(), found.end(), known.begin())) {
      return operator_->run_cuda({known.first(input_count), known.subspan(input_count)}, buffers,
                                 {.stream = stream, .variant = variant_});
    }
    // TensorRT does not guarantee a call of onShapeChange if only a size changes that depends on the data of an earlier
    // layer.
    if (!has_shape_inputs) status = read_inferred(*operator_, in, input_count, output_desc, output_count, tensors);
    if (status.ok()) status = operator_->check(tensors.problem());
    if (!status.ok()) return status;
    return operator_->run_cuda(tensors.problem(), buffers, {.stream = stream, .variant = {}});
  });
}

nvinfer1::IPluginV3* Plugin::attachToContext(nvinfer1::IPluginResourceContext* /*context*/) noexcept { return clone(); }

const nvinfer1::PluginFieldCollection* Plugin::getFieldsToSerialize() noexcept {
  return guarded<const nvinfer1::PluginFieldCollection*>(
      schema_, "getFieldsToSerialize", &serialized_, nullptr, [&]() -> Status {
        serialized_values_.clear();
        serialized_fields_.clear();
        serialized_values_.reserve(schema_.fields.size());  // The fields point into this vector.
        for (const SchemaField& field : schema_.fields) {
          if (field.attribute == nullptr) continue;
          const auto& value = serialized_values_.emplace_back(operator_->get(field.attribute->name).value());
          serialized_fields_.push_back(to_field(field.name.c_str(), value));
        }
        if (!order_.is_own()) {
          serialized_order_ = order_.to_string(*schema_.type);
          serialized_fields_.emplace_back(input_order_field, serialized_order_.data(), nvinfer1::PluginFieldType::kCHAR,
                                          static_cast<std::int32_t>(serialized_order_.size()));
        }
        serialized_ = {static_cast<std::int32_t>(serialized_fields_.size()), serialized_fields_.data()};
        return {};
      });
}

}  // namespace graft::tensorrt
