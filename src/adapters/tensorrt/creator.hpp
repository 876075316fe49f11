// The one plugin creator, made for each schema: an operator's own, and those under which it stands in for another
// library's plugin.
#pragma once

#include <NvInferRuntime.h>

#include <string_view>
#include <vector>

#include "adapters/tensorrt/schema.hpp"

namespace graft::tensorrt {

class Creator final : public nvinfer1::IPluginCreatorV3One {
 public:
  /// `own` is the schema of the plugins that it makes, which are Graft's under whatever name they were asked for: an
  /// engine then never holds a name that another library may answer. It outlives the creator.
  Creator(PluginSchema schema, const PluginSchema& own);

  /// Null, with the reason in the log, where a field is unknown, ill-typed, out of range, or required and missing.
  nvinfer1::IPluginV3* createPlugin(const char* name, const nvinfer1::PluginFieldCollection* fields,
                                    nvinfer1::TensorRTPhase phase) noexcept override;
  const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override;
  [[nodiscard]] const char* getPluginName() const noexcept override;
  [[nodiscard]] const char* getPluginVersion() const noexcept override;
  [[nodiscard]] const char* getPluginNamespace() const noexcept override;

 private:
  PluginSchema schema_;
  const PluginSchema& own_;
  std::vector<nvinfer1::PluginField> field_names_;
  nvinfer1::PluginFieldCollection field_collection_{};
};

/// One for each operator of the registry, in the plugin namespace `space`, which is the same in every call; made at the
/// first call, which TensorRT makes when it loads the library.
[[nodiscard]] const std::vector<nvinfer1::IPluginCreatorInterface*>& creators(std::string_view space);
/// One for each plugin of another library that an operator stands in for; it makes plugins of the namespace `space`.
[[nodiscard]] const std::vector<nvinfer1::IPluginCreatorInterface*>& stand_in_creators(std::string_view space);
/// One for each operator that computes a standard ONNX operator, under that one's name; it makes plugins of `space`.
[[nodiscard]] const std::vector<nvinfer1::IPluginCreatorInterface*>& onnx_creators(std::string_view space);

}  // namespace graft::tensorrt
