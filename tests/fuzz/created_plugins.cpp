// The data of a field end where their memory ends, at any alignment, so that the address sanitizer finds reads beyond
// them.
#include "tests/fuzz/created_plugins.hpp"

#include <NvInferRuntime.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include "adapters/tensorrt/creator.hpp"
#include "adapters/tensorrt/logger.hpp"
#include "adapters/tensorrt/plugin.hpp"
#include "graft/operator/operator.hpp"

namespace graft {

// Replaces the function of programs with kernels, which calls CUDA.
Status runs_on_current_device(int /*compute*/) { return {}; }

}  // namespace graft

namespace graft::fuzz {
namespace {

using nvinfer1::PluginField;
using nvinfer1::PluginFieldType;

class Silence final : public nvinfer1::ILogger, public nvinfer1::ILoggerFinder {
 public:
  void log(Severity /*severity*/, const char* message) noexcept override {
    length_ += std::string_view(message).size();
  }
  nvinfer1::ILogger* findLogger() override { return this; }

 private:
  std::size_t length_ = 0;
};

std::size_t size_of(PluginFieldType type) {
  switch (type) {
    case PluginFieldType::kFLOAT16:
    case PluginFieldType::kBF16:
    case PluginFieldType::kINT16: return 2;
    case PluginFieldType::kFLOAT32:
    case PluginFieldType::kINT32: return 4;
    case PluginFieldType::kINT8:
    case PluginFieldType::kCHAR: return 1;
    case PluginFieldType::kDIMS: return sizeof(nvinfer1::Dims);
    default: return 8;
  }
}

/// The fields of an engine, with the memory to which they point.
class Fields {
 public:
  void add(TakenBytes& bytes, nvinfer1::IPluginCreatorV3One& creator) {
    const nvinfer1::PluginFieldCollection& announced = *creator.getFieldNames();
    PluginField field{nullptr, nullptr, static_cast<PluginFieldType>(bytes.take<std::int8_t>()), 1};
    const std::size_t name = bytes.below(9);
    if (name < 6 && announced.nbFields > 0) {
      const PluginField& known = announced.fields[bytes.below(static_cast<std::size_t>(announced.nbFields))];
      field.name = known.name;
      if (bytes.below(4) != 0) field.type = known.type;
    } else if (name == 8) {
      field.name = tensorrt::input_order_field;
    } else if (name != 7) {
      field.name = names_.emplace_back(bytes.take_text(bytes.below(20))).c_str();
    }
    constexpr std::int32_t longest = 64;
    switch (bytes.below(4)) {
      case 0: break;
      case 1: field.length = static_cast<std::int32_t>(bytes.below(longest)); break;
      case 2: field.length = static_cast<std::int32_t>(bytes.below(4)); break;
      default: field.length = bytes.take<std::int32_t>(); break;
    }
    const bool has_data = field.length >= 0 && field.length <= longest && bytes.below(8) != 7;
    if (has_data) field.data = keep(bytes, static_cast<std::size_t>(field.length) * size_of(field.type));
    fields_.push_back(field);
  }

  [[nodiscard]] nvinfer1::PluginFieldCollection collection() const {
    return {static_cast<std::int32_t>(fields_.size()), fields_.empty() ? nullptr : fields_.data()};
  }

 private:
  const void* keep(TakenBytes& bytes, std::size_t size) {
    const std::size_t begin = bytes.below(2);
    const std::string text = bytes.take_text(size);
    std::unique_ptr<char[]>& data = data_.emplace_back(new char[begin + size]);
    std::copy(text.begin(), text.end(), data.get() + begin);
    return data.get() + begin;
  }

  std::deque<std::string> names_;
  std::vector<std::unique_ptr<char[]>> data_;
  std::vector<PluginField> fields_;
};

nvinfer1::DynamicPluginTensorDesc tensor(TakenBytes& bytes) {
  nvinfer1::DynamicPluginTensorDesc tensor{};
  tensor.desc.dims.nbDims = tensor.min.nbDims = tensor.opt.nbDims = tensor.max.nbDims =
      static_cast<std::int32_t>(bytes.below(6));
  for (std::int32_t axis = 0; axis < tensor.desc.dims.nbDims; ++axis) {
    const auto size = static_cast<std::int64_t>(bytes.below(4) == 0 ? bytes.take<std::uint32_t>() : bytes.below(40));
    tensor.min.d[axis] = tensor.opt.d[axis] = tensor.max.d[axis] = size;
    tensor.desc.dims.d[axis] = bytes.below(3) == 0 ? -1 : size;
  }
  tensor.desc.type = static_cast<nvinfer1::DataType>(bytes.below(12));
  constexpr std::array formats{nvinfer1::TensorFormat::kLINEAR, nvinfer1::TensorFormat::kHWC8,
                               nvinfer1::TensorFormat::kCHW32, nvinfer1::TensorFormat::kHWC};
  tensor.desc.format = formats.at(bytes.below(formats.size()));
  tensor.desc.scale = bytes.take<float>();
  return tensor;
}

/// Calls a plugin's functions that need no GPU.
void use(nvinfer1::IPluginV3& plugin, TakenBytes& bytes) {
  using Type = nvinfer1::PluginCapabilityType;
  auto* build = static_cast<nvinfer1::IPluginV3OneBuild*>(plugin.getCapabilityInterface(Type::kBUILD));
  auto* runtime = static_cast<nvinfer1::IPluginV3OneRuntime*>(plugin.getCapabilityInterface(Type::kRUNTIME));
  static_cast<void>(build->getTimingCacheID());
  static_cast<void>(build->getMetadataString());
  constexpr std::size_t most_inputs = 5;
  const auto inputs = static_cast<std::int32_t>(bytes.below(most_inputs + 1));
  const std::int32_t outputs = build->getNbOutputs();
  std::vector<nvinfer1::DynamicPluginTensorDesc> tensors(static_cast<std::size_t>(inputs + outputs));
  for (auto& each : tensors) each = tensor(bytes);
  const auto* in = tensors.data();
  const auto* out = tensors.data() + inputs;
  std::vector<nvinfer1::PluginTensorDesc> shapes;
  std::vector<nvinfer1::DataType> types;
  for (const auto& each : tensors) {
    shapes.push_back(each.desc);
    types.push_back(each.desc.type);
  }
  std::vector<nvinfer1::DataType> output_types(static_cast<std::size_t>(outputs));
  static_cast<void>(build->getOutputDataTypes(output_types.data(), outputs, types.data(), inputs));
  for (std::int32_t position = 0; position < inputs + outputs; ++position) {
    static_cast<void>(build->supportsFormatCombination(position, in, inputs, outputs));
  }
  if (build->configurePlugin(in, inputs, out, outputs) == 0) {
    static_cast<void>(build->getWorkspaceSize(in, inputs, out, outputs));
  }
  static_cast<void>(runtime->onShapeChange(shapes.data(), inputs, shapes.data() + inputs, outputs));
}

}  // namespace

void create_plugin(TakenBytes& bytes) {
  static Silence silence;
  tensorrt::set_logger_finder(&silence);
  static const auto all = [] {
    std::vector<nvinfer1::IPluginCreatorInterface*> creators = tensorrt::creators(onnx_domain);
    const auto& others = tensorrt::stand_in_creators(onnx_domain);
    creators.insert(creators.end(), others.begin(), others.end());
    return creators;
  }();
  auto& creator = static_cast<nvinfer1::IPluginCreatorV3One&>(*all[bytes.below(all.size())]);
  Fields fields;
  constexpr std::size_t most_fields = 24;
  for (std::size_t i = bytes.below(most_fields); i-- > 0 && !bytes.empty();) fields.add(bytes, creator);
  const nvinfer1::PluginFieldCollection collection = fields.collection();
  const bool is_loaded = bytes.below(2) == 0;
  const auto phase = is_loaded ? nvinfer1::TensorRTPhase::kRUNTIME : nvinfer1::TensorRTPhase::kBUILD;
  const std::unique_ptr<nvinfer1::IPluginV3> plugin(creator.createPlugin("fuzz", &collection, phase));
  if (plugin == nullptr) return;
  use(*plugin, bytes);
  const std::unique_ptr<nvinfer1::IPluginV3> copy(plugin->clone());
  if (copy == nullptr) std::abort();
  auto* runtime = static_cast<nvinfer1::IPluginV3OneRuntime*>(
      copy->getCapabilityInterface(nvinfer1::PluginCapabilityType::kRUNTIME));
  const nvinfer1::PluginFieldCollection* kept = runtime->getFieldsToSerialize();
  const auto* core =
      static_cast<nvinfer1::IPluginV3OneCore*>(copy->getCapabilityInterface(nvinfer1::PluginCapabilityType::kCORE));
  for (nvinfer1::IPluginCreatorInterface* each : all) {
    auto& own = static_cast<nvinfer1::IPluginCreatorV3One&>(*each);
    if (std::string_view(own.getPluginName()) != core->getPluginName() ||
        std::string_view(own.getPluginNamespace()) != core->getPluginNamespace())
      continue;
    const std::unique_ptr<nvinfer1::IPluginV3> again(own.createPlugin("fuzz", kept, nvinfer1::TensorRTPhase::kRUNTIME));
    if (again != nullptr) return;
  }
  std::abort();  // a serialized engine must load
}

}  // namespace graft::fuzz
