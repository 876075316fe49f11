// The plugin creator, one instance per schema: an operator's own schema, and the schemas under which it replaces the
// plugin of another library.
#pragma once

#include <NvInferRuntime.h>

#include <string_view>
#include <vector>

#include "adapters/tensorrt/schema.hpp"

namespace graft::tensorrt {

class Creator final : public nvinfer1::IPluginCreatorV3One {
 public:
  /// The creator accepts the name and the fields in `schema`. Its plugins always have the name in `own`, Graft's schema
  /// of the operator, so that an engine never contains a name that another library may own. `own` must outlive the
  /// creator.
  Creator(PluginSchema schema, const PluginSchema& own);

  /// Returns a new plugin. If a field is unknown, ill-typed, out of range, or required and missing, logs the reason and
  /// returns null.
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

/// Returns a creator for each operator of the registry, in the plugin namespace `space`, which must be the same in
/// every call. The first call, by TensorRT when it loads the library, creates them.
[[nodiscard]] const std::vector<nvinfer1::IPluginCreatorInterface*>& creators(std::string_view space);
/// Returns a creator for each plugin of another library, such as NVIDIA's standard plugins, that one of Graft's
/// operators replaces. Each creator has the name of the plugin that it replaces. The plugins that the creators create
/// have the namespace `space`.
[[nodiscard]] const std::vector<nvinfer1::IPluginCreatorInterface*>& stand_in_creators(std::string_view space);
/// Returns a creator for each operator that implements a standard ONNX operator, under the ONNX operator's name. The
/// plugins that the creators create have the namespace `space`.
[[nodiscard]] const std::vector<nvinfer1::IPluginCreatorInterface*>& onnx_creators(std::string_view space);

}  // namespace graft::tensorrt
