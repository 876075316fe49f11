// A plugin of the interface V2, to test the messages of current TensorRTs about it. STATIC_REGISTRATION: the plugin
// registers itself when the library is opened. LIST_OF_V2: the library exports only the older entry point.
#include <NvInferRuntime.h>

#include <cstddef>
#include <cstdint>

namespace {

using namespace nvinfer1;

class OldPlugin final : public IPluginV2DynamicExt {
 public:
  IPluginV2DynamicExt* clone() const noexcept override { return new OldPlugin(*this); }
  DimsExprs getOutputDimensions(std::int32_t, DimsExprs const* inputs, std::int32_t, IExprBuilder&) noexcept override {
    return inputs[0];
  }
  bool supportsFormatCombination(std::int32_t pos, PluginTensorDesc const* descs, std::int32_t,
                                 std::int32_t) noexcept override {
    return descs[pos].format == TensorFormat::kLINEAR && descs[pos].type == DataType::kFLOAT;
  }
  void configurePlugin(DynamicPluginTensorDesc const*, std::int32_t, DynamicPluginTensorDesc const*,
                       std::int32_t) noexcept override {}
  std::size_t getWorkspaceSize(PluginTensorDesc const*, std::int32_t, PluginTensorDesc const*,
                               std::int32_t) const noexcept override {
    return 0;
  }
  std::int32_t enqueue(PluginTensorDesc const*, PluginTensorDesc const*, void const* const*, void* const*, void*,
                       cudaStream_t) noexcept override {
    return 1;
  }
  DataType getOutputDataType(std::int32_t, DataType const* inputs, std::int32_t) const noexcept override {
    return inputs[0];
  }
  AsciiChar const* getPluginType() const noexcept override { return "OldPlugin"; }
  AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
  std::int32_t getNbOutputs() const noexcept override { return 1; }
  std::int32_t initialize() noexcept override { return 0; }
  void terminate() noexcept override {}
  std::size_t getSerializationSize() const noexcept override { return 0; }
  void serialize(void*) const noexcept override {}
  void destroy() noexcept override { delete this; }
  void setPluginNamespace(AsciiChar const*) noexcept override {}
  AsciiChar const* getPluginNamespace() const noexcept override { return ""; }
};

class OldCreator final : public IPluginCreator {
 public:
  AsciiChar const* getPluginName() const noexcept override { return "OldPlugin"; }
  AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
  PluginFieldCollection const* getFieldNames() noexcept override { return &fields_; }
  IPluginV2* createPlugin(AsciiChar const*, PluginFieldCollection const*) noexcept override { return new OldPlugin; }
  IPluginV2* deserializePlugin(AsciiChar const*, void const*, std::size_t) noexcept override { return new OldPlugin; }
  void setPluginNamespace(AsciiChar const*) noexcept override {}
  AsciiChar const* getPluginNamespace() const noexcept override { return ""; }

 private:
  PluginFieldCollection fields_{0, nullptr};
};

#ifdef STATIC_REGISTRATION
REGISTER_TENSORRT_PLUGIN(OldCreator);
#endif

}  // namespace

#ifndef STATIC_REGISTRATION
extern "C" void setLoggerFinder(ILoggerFinder*) {}

#ifdef LIST_OF_V2
extern "C" IPluginCreator* const* getPluginCreators(std::int32_t& count) {
  static IPluginCreator* const creators[] = {new OldCreator};
#else
extern "C" IPluginCreatorInterface* const* getCreators(std::int32_t& count) {
  static IPluginCreatorInterface* const creators[] = {new OldCreator};
#endif
  count = 1;
  return creators;
}
#endif
