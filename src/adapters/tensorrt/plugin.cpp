// The one TensorRT plugin: any Operator behind the IPluginV3 interfaces.
#include "adapters/tensorrt/plugin.hpp"

#include <link.h>

#include <array>
#include <exception>
#include <string_view>
#include <utility>

#include "adapters/tensorrt/convert.hpp"
#include "adapters/tensorrt/logger.hpp"
#include "core/hash.hpp"

namespace graft::tensorrt {
namespace {

constexpr std::int32_t success = 0;
constexpr std::int32_t failure = -1;

/// The tensors of one call, held on the stack so that enqueue allocates nothing.
class Tensors {
 public:
  Status read(const nvinfer1::PluginTensorDesc* inputs, std::size_t input_count,
              const nvinfer1::PluginTensorDesc* outputs, std::size_t output_count) {
    if (input_count + output_count > descs_.size()) return unsupported("more than 8 inputs and outputs");
    input_count_ = input_count;
    output_count_ = output_count;
    for (std::size_t i = 0; i < input_count + output_count; ++i) {
      const auto& desc = i < input_count ? inputs[i] : outputs[i - input_count];
      if (Status status = from_tensorrt(desc, descs_[i]); !status.ok()) return status;
    }
    return {};
  }

  [[nodiscard]] Problem problem() const {
    const std::span<const TensorDesc> all(descs_.data(), input_count_ + output_count_);
    return {all.first(input_count_), all.subspan(input_count_)};
  }

 private:
  std::array<TensorDesc, TypeRow::max_ports> descs_;
  std::size_t input_count_ = 0;
  std::size_t output_count_ = 0;
};

bool is_loaded(std::string_view library) {
  const auto has_name = [](dl_phdr_info* info, std::size_t /*size*/, void* wanted) -> int {
    const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    const std::string_view file = path.substr(path.rfind('/') + 1);
    return file.starts_with(*static_cast<const std::string_view*>(wanted)) ? 1 : 0;
  };
  return dl_iterate_phdr(has_name, &library) != 0;
}

/// TensorRT-RTX 1.7 takes int8 in groups of 32 channels wherever a plugin offers that, and writes it as linear in
/// between: each plugin gets a kernel before it and one behind it that do nothing but move elements, also where two
/// plugins follow each other. So it is offered the linear layout alone.
bool offers_groups_of_channels() {
  static const bool is_rtx = is_loaded("libtensorrt_rtx") && !is_loaded("libnvinfer.so");
  return !is_rtx;
}

/// While an engine is built sizes are ranges; `pick` says which end of them to use where a dimension is not fixed.
Status read_range(const nvinfer1::DynamicPluginTensorDesc* inputs, std::size_t input_count,
                  const nvinfer1::DynamicPluginTensorDesc* outputs, std::size_t output_count,
                  nvinfer1::Dims nvinfer1::DynamicPluginTensorDesc::*pick, Tensors& tensors) {
  std::array<nvinfer1::PluginTensorDesc, TypeRow::max_ports> descs{};
  if (input_count + output_count > descs.size()) return unsupported("more than 8 inputs and outputs");
  for (std::size_t i = 0; i < input_count + output_count; ++i) {
    const auto& from = i < input_count ? inputs[i] : outputs[i - input_count];
    descs[i] = from.desc;
    const nvinfer1::Dims& range = from.*pick;
    for (std::int32_t axis = 0; axis < descs[i].dims.nbDims; ++axis) {
      auto& extent = descs[i].dims.d[axis];
      if (extent < 0 && axis < range.nbDims) extent = range.d[axis];
    }
  }
  return tensors.read(descs.data(), input_count, descs.data() + input_count, output_count);
}

/// Runs `body`, which returns a Status, and turns failures and exceptions into a log line and `on_failure`.
template <class Result, class Body>
Result guarded(const PluginSchema& schema, const char* call, Result on_success, Result on_failure,
               Body&& body) noexcept {
  try {
    const Status status = body();
    if (status.ok()) return on_success;
    log_error(("graft plugin " + schema.name + " " + schema.version + ": " + call + ": " + status.message()).c_str());
  } catch (const std::exception& error) {  // memory may have run out, so nothing is put together here
    log_error(error.what());
  } catch (...) {
    log_error("graft plugin: an unknown exception");
  }
  return on_failure;
}

}  // namespace

std::int32_t tactic_of(std::string_view variant) {
  return static_cast<std::int32_t>(hash_of(variant) >> 1U | 1U);  // TensorRT wants them positive
}

Plugin::Plugin(const PluginSchema& schema, std::unique_ptr<Operator> op)
    : schema_(schema), operator_(std::move(op)), input_count_(schema.type->input_count()) {}

nvinfer1::IPluginCapability* Plugin::getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept {
  switch (type) {
    case nvinfer1::PluginCapabilityType::kCORE: return static_cast<nvinfer1::IPluginV3OneCore*>(this);
    case nvinfer1::PluginCapabilityType::kBUILD: return static_cast<nvinfer1::IPluginV3OneBuild*>(this);
    case nvinfer1::PluginCapabilityType::kRUNTIME: return static_cast<nvinfer1::IPluginV3OneRuntime*>(this);
  }
  return nullptr;
}

nvinfer1::IPluginV3* Plugin::clone() noexcept {
  nvinfer1::IPluginV3* copy = nullptr;
  guarded(schema_, "clone", success, failure, [&]() -> Status {
    auto made = std::make_unique<Plugin>(schema_, operator_->clone());
    made->input_count_ = input_count_;
    made->fitting_ = fitting_;
    made->variant_ = variant_;
    made->tactic_ = tactic_;
    made->tactics_ = tactics_;
    copy = made.release();  // TensorRT owns it from here
    return {};
  });
  return copy;
}

const char* Plugin::getPluginName() const noexcept { return schema_.name.c_str(); }
const char* Plugin::getPluginVersion() const noexcept { return schema_.version.c_str(); }
const char* Plugin::getPluginNamespace() const noexcept { return ""; }
std::int32_t Plugin::getNbOutputs() const noexcept { return static_cast<std::int32_t>(schema_.type->output_count()); }

std::int32_t Plugin::configurePlugin(const nvinfer1::DynamicPluginTensorDesc* in, std::int32_t input_count,
                                     const nvinfer1::DynamicPluginTensorDesc* out, std::int32_t output_count) noexcept {
  return guarded(schema_, "configurePlugin", success, failure, [&]() -> Status {
    Tensors tensors;
    // Both ends of the range: a window that does not fit the smallest image would otherwise be found at inference.
    for (const auto end : {&nvinfer1::DynamicPluginTensorDesc::min, &nvinfer1::DynamicPluginTensorDesc::max}) {
      if (Status status = read_range(in, static_cast<std::size_t>(input_count), out,
                                     static_cast<std::size_t>(output_count), end, tensors);
          !status.ok()) {
        return status;
      }
      if (Status status = operator_->check(tensors.problem()); !status.ok()) return status;
    }
    input_count_ = static_cast<std::size_t>(input_count);
    tactics_.clear();
    if (!schema_.type->timed_variants) return {};
    if (Status status =
            read_range(in, static_cast<std::size_t>(input_count), out, static_cast<std::size_t>(output_count),
                       &nvinfer1::DynamicPluginTensorDesc::opt, tensors);
        !status.ok()) {
      return status;
    }
    for (const VariantInfo& variant : operator_->cuda_variants(tensors.problem())) {
      if (variant.fits.ok()) tactics_.push_back(tactic_of(variant.name));
    }
    return {};
  });
}

std::int32_t Plugin::getNbTactics() noexcept { return static_cast<std::int32_t>(tactics_.size()); }

std::int32_t Plugin::getValidTactics(std::int32_t* tactics, std::int32_t count) noexcept {
  for (std::int32_t i = 0; i < count; ++i) tactics[i] = tactics_[static_cast<std::size_t>(i)];
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
    std::vector<DType> inputs;
    std::string found;
    for (std::int32_t i = 0; i < input_count; ++i) {
      const auto dtype = from_tensorrt(input_types[i]);
      if (dtype) inputs.push_back(*dtype);
      found += (i == 0 ? "" : ", ") + std::string(dtype ? to_string(*dtype) : "a type that Graft does not have");
    }
    const auto outputs = schema_.type->output_dtypes(inputs);
    if (!outputs || outputs->size() != static_cast<std::size_t>(output_count)) {
      return unsupported("no type row for inputs of " + found + "; `graft ops " + std::string(schema_.type->name) +
                         "` lists the allowed ones");
    }
    for (std::size_t i = 0; i < outputs->size(); ++i) output_types[i] = to_tensorrt((*outputs)[i]);
    return {};
  });
}

std::int32_t Plugin::getOutputShapes(const nvinfer1::DimsExprs* inputs, std::int32_t input_count,
                                     const nvinfer1::DimsExprs* /*shape_inputs*/, std::int32_t /*shape_input_count*/,
                                     nvinfer1::DimsExprs* outputs, std::int32_t output_count,
                                     nvinfer1::IExprBuilder& builder) noexcept {
  return guarded(schema_, "getOutputShapes", success, failure, [&]() -> Status {
    return infer_shapes(*operator_, {inputs, static_cast<std::size_t>(input_count)},
                        {outputs, static_cast<std::size_t>(output_count)}, builder);
  });
}

bool Plugin::supportsFormatCombination(std::int32_t position, const nvinfer1::DynamicPluginTensorDesc* in_out,
                                       std::int32_t input_count, std::int32_t /*output_count*/) noexcept {
  bool supported = false;
  guarded(schema_, "supportsFormatCombination", success, failure, [&]() -> Status {
    std::vector<int> ranks;
    for (std::int32_t i = 0; i < input_count; ++i) ranks.push_back(in_out[i].desc.dims.nbDims);
    for (const TypeRow& row : schema_.type->type_rows) {
      bool matches =
          operator_->accepts(row, ranks) && (row.formats[0].layout != Layout::chw32 || offers_groups_of_channels());
      for (std::int32_t i = 0; matches && i <= position; ++i) {
        const Format& allowed = schema_.type->format_of(row, ranks.size(), static_cast<std::size_t>(i));
        matches =
            in_out[i].desc.type == to_tensorrt(allowed.dtype) && in_out[i].desc.format == to_tensorrt(allowed.layout);
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
  std::size_t bytes = 0;
  guarded(schema_, "getWorkspaceSize", success, failure, [&]() -> Status {
    Tensors tensors;
    if (Status status =
            read_range(inputs, static_cast<std::size_t>(input_count), outputs, static_cast<std::size_t>(output_count),
                       &nvinfer1::DynamicPluginTensorDesc::max, tensors);
        !status.ok()) {
      return status;
    }
    bytes = operator_->workspace(tensors.problem());
    return {};
  });
  return bytes;
}

std::int32_t Plugin::onShapeChange(const nvinfer1::PluginTensorDesc* in, std::int32_t input_count,
                                   const nvinfer1::PluginTensorDesc* out, std::int32_t output_count) noexcept {
  return guarded(schema_, "onShapeChange", success, failure, [&]() -> Status {
    Tensors tensors;
    if (Status status =
            tensors.read(in, static_cast<std::size_t>(input_count), out, static_cast<std::size_t>(output_count));
        !status.ok()) {
      return status;
    }
    if (Status status = operator_->check(tensors.problem()); !status.ok()) return status;
    input_count_ = static_cast<std::size_t>(input_count);
    fitting_.clear();
    for (const VariantInfo& variant : operator_->cuda_variants(tensors.problem())) {
      if (variant.fits.ok() && runs_on_current_device(variant.compute).ok()) fitting_.emplace_back(variant.name);
    }
    choose_variant();
    return operator_->prepare_cuda(tensors.problem());
  });
}

std::int32_t Plugin::enqueue(const nvinfer1::PluginTensorDesc* input_desc,
                             const nvinfer1::PluginTensorDesc* output_desc, const void* const* inputs,
                             void* const* outputs, void* workspace, cudaStream_t stream) noexcept {
  return guarded(schema_, "enqueue", success, failure, [&]() -> Status {
    const std::size_t input_count = input_count_;
    const std::size_t output_count = schema_.type->output_count();
    Tensors tensors;
    if (Status status = tensors.read(input_desc, input_count, output_desc, output_count); !status.ok()) return status;
    return operator_->run_cuda(tensors.problem(), {{inputs, input_count}, {outputs, output_count}, workspace},
                               {.stream = stream, .variant = variant_});
  });
}

nvinfer1::IPluginV3* Plugin::attachToContext(nvinfer1::IPluginResourceContext* /*context*/) noexcept { return clone(); }

const nvinfer1::PluginFieldCollection* Plugin::getFieldsToSerialize() noexcept {
  return guarded<const nvinfer1::PluginFieldCollection*>(
      schema_, "getFieldsToSerialize", &serialized_, nullptr, [&]() -> Status {
        serialized_values_.clear();
        serialized_fields_.clear();
        serialized_values_.reserve(schema_.fields.size());  // the fields point into it
        for (const SchemaField& field : schema_.fields) {
          if (field.attribute == nullptr) continue;
          const auto& value = serialized_values_.emplace_back(operator_->get(field.attribute->name).value());
          serialized_fields_.push_back(to_field(field.name.c_str(), value));
        }
        serialized_ = {static_cast<std::int32_t>(serialized_fields_.size()), serialized_fields_.data()};
        return {};
      });
}

}  // namespace graft::tensorrt
