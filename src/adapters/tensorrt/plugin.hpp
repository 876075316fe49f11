// Implements the IPluginV3 interfaces of TensorRT for any Operator.
#pragma once

#include <NvInferRuntime.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/tensorrt/schema.hpp"
#include "graft/operator/input_order.hpp"
#include "graft/operator/operator.hpp"

namespace graft::tensorrt {

/// The name of the plugin field in which an engine stores the input order of a plugin that was created under the name
/// of another library's plugin. The field is a string of input names, such as "x,offset,mask". No attribute can have
/// this name.
inline constexpr const char* input_order_field = "graft.inputs";

/// Returns the tactic number by which TensorRT identifies `variant`, one of the operator's CUDA implementations.
[[nodiscard]] std::int32_t tactic_of(std::string_view variant);

/// The interface for building engines. It reports version 2 only if an output aliases an input: TensorRT 10.0 to 10.2
/// support version 1 only, whose calls are the same.
class BuildCapability : public nvinfer1::IPluginV3OneBuildV2 {
 public:
  [[nodiscard]] nvinfer1::InterfaceInfo getInterfaceInfo() const noexcept final {
    nvinfer1::InterfaceInfo info = nvinfer1::IPluginV3OneBuildV2::getInterfaceInfo();
    if (!has_aliased_ports()) info.major = 1;
    return info;
  }

 protected:
  [[nodiscard]] virtual bool has_aliased_ports() const noexcept = 0;
};

/// A plugin for TensorRT. Errors are logged to TensorRT's logger, and the call returns TensorRT's failure code. The
/// plugin calls CUDA in onShapeChange (for the device's compute capability and for copies of the inputs that attributes
/// replace) and in enqueue, but never while an engine is built.
///
/// Scales of i8 tensors are attributes. Under implicit quantization, which TensorRT 10's calibration adds to a model
/// without scales, TensorRT passes a scale with each i8 tensor: the plugin stores it in the attribute if the attribute
/// still has its default value.
class Plugin final : public nvinfer1::IPluginV3,
                     public nvinfer1::IPluginV3OneCore,
                     public BuildCapability,
                     public nvinfer1::IPluginV3OneRuntime {
 public:
  /// Creates a plugin that runs `op`. `schema` is Graft's own schema of the operator and must outlive the plugin.
  /// TensorRT passes the inputs in the order `order`, by default the operator's own order; every call first arranges
  /// them in the operator's order.
  Plugin(const PluginSchema& schema, std::unique_ptr<Operator> op, const InputOrder& order = {});

  // IPluginV3
  nvinfer1::IPluginCapability* getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept override;
  nvinfer1::IPluginV3* clone() noexcept override;

  // IPluginV3OneCore
  [[nodiscard]] const char* getPluginName() const noexcept override;
  [[nodiscard]] const char* getPluginVersion() const noexcept override;
  [[nodiscard]] const char* getPluginNamespace() const noexcept override;

  // IPluginV3OneBuild
  std::int32_t configurePlugin(const nvinfer1::DynamicPluginTensorDesc* given, std::int32_t given_count,
                               const nvinfer1::DynamicPluginTensorDesc* out,
                               std::int32_t output_count) noexcept override;
  std::int32_t getOutputDataTypes(nvinfer1::DataType* output_types, std::int32_t output_count,
                                  const nvinfer1::DataType* input_types,
                                  std::int32_t input_count) const noexcept override;
  std::int32_t getOutputShapes(const nvinfer1::DimsExprs* inputs, std::int32_t input_count,
                               const nvinfer1::DimsExprs* shape_inputs, std::int32_t shape_input_count,
                               nvinfer1::DimsExprs* outputs, std::int32_t output_count,
                               nvinfer1::IExprBuilder& builder) noexcept override;
  bool supportsFormatCombination(std::int32_t position, const nvinfer1::DynamicPluginTensorDesc* in_out,
                                 std::int32_t input_count, std::int32_t output_count) noexcept override;
  /// Returns the number of combinations of types that the operator supports, but at least TensorRT's default limit.
  /// With the default limit, TensorRT might not try all combinations of an operator with several type constraints.
  std::int32_t getFormatCombinationLimit() noexcept override;
  [[nodiscard]] std::int32_t getNbOutputs() const noexcept override;
  std::size_t getWorkspaceSize(const nvinfer1::DynamicPluginTensorDesc* inputs, std::int32_t input_count,
                               const nvinfer1::DynamicPluginTensorDesc* outputs,
                               std::int32_t output_count) const noexcept override;

  std::int32_t getAliasedInput(std::int32_t output) noexcept override;
  /// Returns the number of tactics: one for each CUDA implementation (variant) that supports the problem if the
  /// operator has timed_variants, otherwise 0.
  std::int32_t getNbTactics() noexcept override;
  std::int32_t getValidTactics(std::int32_t* tactics, std::int32_t count) noexcept override;
  /// Returns Graft's version, the operator and all attributes. TensorRT adds everything else that determines the time
  /// of a tactic.
  const char* getTimingCacheID() noexcept override;
  /// Returns the attributes that differ from their defaults, for TensorRT's inspector and log.
  const char* getMetadataString() noexcept override;

  // IPluginV3OneRuntime
  std::int32_t setTactic(std::int32_t tactic) noexcept override;
  /// Prepares the kernels for the sizes of the tensors. Does nothing if a size of an input is not known yet (-1).
  std::int32_t onShapeChange(const nvinfer1::PluginTensorDesc* given, std::int32_t given_count,
                             const nvinfer1::PluginTensorDesc* out, std::int32_t output_count) noexcept override;
  /// Runs the kernels. Sizes that onShapeChange has prepared run without allocating memory; other sizes are checked
  /// first.
  std::int32_t enqueue(const nvinfer1::PluginTensorDesc* input_desc, const nvinfer1::PluginTensorDesc* output_desc,
                       const void* const* inputs, void* const* outputs, void* workspace,
                       cudaStream_t stream) noexcept override;
  nvinfer1::IPluginV3* attachToContext(nvinfer1::IPluginResourceContext* context) noexcept override;
  const nvinfer1::PluginFieldCollection* getFieldsToSerialize() noexcept override;

 private:
  [[nodiscard]] bool has_aliased_ports() const noexcept override;
  void choose_variant();
  /// Returns an error if `given`, the number of inputs that TensorRT passes, is wrong, or if an input is left out whose
  /// memory an output uses.
  [[nodiscard]] Status check_inputs(std::size_t given) const;
  [[nodiscard]] Status adopt_scales(std::span<const nvinfer1::PluginTensorDesc> inputs,
                                    std::span<const nvinfer1::PluginTensorDesc> outputs);

  const PluginSchema& schema_;
  std::unique_ptr<Operator> operator_;
  InputOrder order_;
  std::size_t input_count_;  // number of inputs in the network; enqueue does not receive it
  std::vector<TensorDesc>
      prepared_;  // the tensors of the last onShapeChange, which TensorRT also calls if only addresses change
  std::vector<std::string> fitting_;  // the variants that fit these tensors, best first
  std::string variant_;               // the selected one; set by onShapeChange and setTactic, in either order
  std::int32_t tactic_ = 0;           // the tactic that TensorRT has timed as fastest; 0: the first variant that fits
  std::vector<std::int32_t> tactics_;
  std::string timing_cache_id_;
  std::string metadata_;
  std::string serialized_order_;
  std::vector<AttributeValue> serialized_values_;
  std::vector<nvinfer1::PluginField> serialized_fields_;
  nvinfer1::PluginFieldCollection serialized_{};
};

}  // namespace graft::tensorrt
