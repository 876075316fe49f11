// The one plugin creator, made for each schema.
#pragma once

#include <NvInferRuntime.h>

#include <vector>

#include "adapters/tensorrt/schema.hpp"

namespace graft::tensorrt {

class Creator final : public nvinfer1::IPluginCreatorV3One {
 public:
  explicit Creator(PluginSchema schema);

  /// Null, with the reason in the log, where a field is unknown, ill-typed, out of range, or required and missing.
  nvinfer1::IPluginV3* createPlugin(const char* name, const nvinfer1::PluginFieldCollection* fields,
                                    nvinfer1::TensorRTPhase phase) noexcept override;
  const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override;
  [[nodiscard]] const char* getPluginName() const noexcept override;
  [[nodiscard]] const char* getPluginVersion() const noexcept override;
  [[nodiscard]] const char* getPluginNamespace() const noexcept override;

 private:
  PluginSchema schema_;
  std::vector<nvinfer1::PluginField> field_names_;
  nvinfer1::PluginFieldCollection field_collection_{};
};

/// One for each schema of each operator of the registry; made at the first call, which TensorRT makes when it loads the
/// library.
[[nodiscard]] const std::vector<nvinfer1::IPluginCreatorInterface*>& creators();

}  // namespace graft::tensorrt
