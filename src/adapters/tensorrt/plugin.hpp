// The one TensorRT plugin: any Operator behind the IPluginV3 interfaces.
#pragma once

#include <NvInferRuntime.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/tensorrt/schema.hpp"
#include "graft/input_order.hpp"
#include "graft/operator.hpp"

namespace graft::tensorrt {

/// The field in which an engine keeps the order of a stand-in's inputs, as text. No attribute can have that name.
inline constexpr const char* input_order_field = "graft.inputs";

/// The number under which TensorRT remembers a variant that it chose.
[[nodiscard]] std::int32_t tactic_of(std::string_view variant);

/// What a plugin says while an engine is built, in the second form of that interface only where an output takes the
/// memory of an input: TensorRT 10.0 to 10.2 know the first alone, whose calls are the same.
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

/// Errors go to TensorRT's logger, and the call returns TensorRT's failure code. Calls CUDA in onShapeChange (the
/// device's capability, copies of what attributes supply) and in enqueue; nowhere while an engine is built.
///
/// Scales of i8 tensors are attributes. Under implicit quantization, which a model without them gets from TensorRT 10's
/// calibration, TensorRT gives a scale with each i8 tensor: an attribute that still has its default takes it.
class Plugin final : public nvinfer1::IPluginV3,
                     public nvinfer1::IPluginV3OneCore,
                     public BuildCapability,
                     public nvinfer1::IPluginV3OneRuntime {
 public:
  /// `schema`, the operator's own, outlives the plugin: the library keeps it until it is unloaded. TensorRT gives the
  /// inputs in the order `order`: every call puts them into the operator's first.
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
  /// TensorRT asks for so many at the most; the default may leave out rows of an operator with several constraints.
  std::int32_t getFormatCombinationLimit() noexcept override;
  [[nodiscard]] std::int32_t getNbOutputs() const noexcept override;
  std::size_t getWorkspaceSize(const nvinfer1::DynamicPluginTensorDesc* inputs, std::int32_t input_count,
                               const nvinfer1::DynamicPluginTensorDesc* outputs,
                               std::int32_t output_count) const noexcept override;

  std::int32_t getAliasedInput(std::int32_t output) noexcept override;
  /// Each fitting variant is a tactic if the operator wants its variants timed.
  std::int32_t getNbTactics() noexcept override;
  std::int32_t getValidTactics(std::int32_t* tactics, std::int32_t count) noexcept override;
  /// Graft's version, the operator and all attributes: what else decides how long a tactic takes, TensorRT adds.
  const char* getTimingCacheID() noexcept override;
  /// The attributes that differ from their defaults, for TensorRT's inspector and log.
  const char* getMetadataString() noexcept override;

  // IPluginV3OneRuntime
  std::int32_t setTactic(std::int32_t tactic) noexcept override;
  /// Prepares nothing where TensorRT does not know a size of the inputs yet (-1).
  std::int32_t onShapeChange(const nvinfer1::PluginTensorDesc* given, std::int32_t given_count,
                             const nvinfer1::PluginTensorDesc* out, std::int32_t output_count) noexcept override;
  /// Of any sizes: those that onShapeChange prepared are run at once and without allocating, others are checked first.
  std::int32_t enqueue(const nvinfer1::PluginTensorDesc* input_desc, const nvinfer1::PluginTensorDesc* output_desc,
                       const void* const* inputs, void* const* outputs, void* workspace,
                       cudaStream_t stream) noexcept override;
  nvinfer1::IPluginV3* attachToContext(nvinfer1::IPluginResourceContext* context) noexcept override;
  const nvinfer1::PluginFieldCollection* getFieldsToSerialize() noexcept override;

 private:
  [[nodiscard]] bool has_aliased_ports() const noexcept override;
  void choose_variant();
  /// That there are as many as the operator takes, and all whose memory an output takes.
  [[nodiscard]] Status check_inputs(std::size_t given) const;
  [[nodiscard]] Status adopt_scales(std::span<const nvinfer1::PluginTensorDesc> inputs,
                                    std::span<const nvinfer1::PluginTensorDesc> outputs);

  const PluginSchema& schema_;
  std::unique_ptr<Operator> operator_;
  InputOrder order_;
  std::size_t input_count_;           // what the network gives; enqueue is not told
  std::vector<TensorDesc> prepared_;  // what the last onShapeChange was told; also called when only addresses change
  std::vector<std::string> fitting_;  // the variants for these, best first
  std::string variant_;               // chosen of them ahead of enqueue, by onShapeChange and setTactic in either order
  std::int32_t tactic_ = 0;           // what TensorRT's timing chose; 0 for the first variant that fits
  std::vector<std::int32_t> tactics_;
  std::string timing_cache_id_;
  std::string metadata_;
  std::string serialized_order_;
  std::vector<AttributeValue> serialized_values_;
  std::vector<nvinfer1::PluginField> serialized_fields_;
  nvinfer1::PluginFieldCollection serialized_{};
};

}  // namespace graft::tensorrt
