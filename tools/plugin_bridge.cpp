// Makes functions available that TensorRT's Python bindings lack: cloning a C++ plugin, reading its serialized fields.
//
// The functions take the pointers of the bindings' objects. IPluginV3 and IPluginCreatorV3One are the same in TensorRT
// 10, 11 and RTX.
#include <NvInferRuntime.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace {

using namespace nvinfer1;

std::size_t size_of(PluginFieldType type) {
  switch (type) {
    case PluginFieldType::kINT8:
    case PluginFieldType::kCHAR: return 1;
    case PluginFieldType::kFLOAT16:
    case PluginFieldType::kBF16:
    case PluginFieldType::kINT16: return 2;
    case PluginFieldType::kFLOAT32:
    case PluginFieldType::kINT32: return 4;
    case PluginFieldType::kFLOAT64:
    case PluginFieldType::kINT64: return 8;
    default: return 0;
  }
}

std::string hexadecimal(void const* data, std::size_t size) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    auto const byte = static_cast<unsigned char const*>(data)[i];
    text += {digits[byte >> 4U], digits[byte & 15U]};
  }
  return text;
}

template <class Interface>
Interface* capability(void* plugin, PluginCapabilityType type) {
  return static_cast<Interface*>(static_cast<IPluginV3*>(plugin)->getCapabilityInterface(type));
}

}  // namespace

extern "C" {

/// Returns whether the pointer is an IPluginV3, by the name of its interface.
bool bridge_is_plugin(void* plugin) {
  return std::strcmp(static_cast<IPluginV3*>(plugin)->getInterfaceInfo().kind, "PLUGIN") == 0;
}

void* bridge_clone(void* plugin) { return static_cast<IPluginV3*>(plugin)->clone(); }

void bridge_destroy(void* plugin) { delete static_cast<IPluginV3*>(plugin); }

/// Creates a plugin from the serialized fields of another one, as TensorRT does when it loads an engine.
void* bridge_recreate(void* creator, void* plugin) {
  auto* runtime = capability<IPluginV3OneRuntime>(plugin, PluginCapabilityType::kRUNTIME);
  return static_cast<IPluginCreatorV3One*>(creator)->createPlugin("recreated", runtime->getFieldsToSerialize(),
                                                                  TensorRTPhase::kRUNTIME);
}

/// Writes `name version namespace`, then one line for each serialized field: `name type length bytes-in-hexadecimal`;
/// an empty string where there is not enough room.
void bridge_describe(void* plugin, char* text, std::size_t room) {
  auto* core = capability<IPluginV3OneCore>(plugin, PluginCapabilityType::kCORE);
  std::string all =
      std::string(core->getPluginName()) + '\t' + core->getPluginVersion() + '\t' + core->getPluginNamespace() + '\n';
  auto const* fields = capability<IPluginV3OneRuntime>(plugin, PluginCapabilityType::kRUNTIME)->getFieldsToSerialize();
  for (std::int32_t i = 0; fields != nullptr && i < fields->nbFields; ++i) {
    PluginField const& field = fields->fields[i];
    auto const size = size_of(field.type) * static_cast<std::size_t>(field.length);
    all += std::string(field.name) + '\t' + std::to_string(static_cast<int>(field.type)) + '\t' +
           std::to_string(field.length) + '\t' + hexadecimal(field.data, size) + '\n';
  }
  std::strncpy(text, all.size() < room ? all.c_str() : "", room);
}

/// Returns whether a plugin with one input and one output supports this data type and format for both.
bool bridge_accepts(void* plugin, int dtype, int format, int rank) {
  DynamicPluginTensorDesc descs[2]{};
  for (auto& desc : descs) {
    desc.desc.type = static_cast<DataType>(dtype);
    desc.desc.format = static_cast<TensorFormat>(format);
    desc.desc.dims.nbDims = rank;
    for (int axis = 0; axis < rank; ++axis) desc.desc.dims.d[axis] = 8;
    desc.min = desc.opt = desc.max = desc.desc.dims;
  }
  auto* build = capability<IPluginV3OneBuild>(plugin, PluginCapabilityType::kBUILD);
  return build->supportsFormatCombination(0, descs, 1, 1) && build->supportsFormatCombination(1, descs, 1, 1);
}

}  // extern "C"
