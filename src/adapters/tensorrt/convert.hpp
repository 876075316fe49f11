// Between TensorRT's types and Graft's.
#pragma once

#include <NvInferRuntime.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graft/operator.hpp"

namespace graft::tensorrt {

[[nodiscard]] std::optional<DType> from_tensorrt(nvinfer1::DataType type);
[[nodiscard]] nvinfer1::DataType to_tensorrt(DType dtype);
[[nodiscard]] std::optional<Layout> from_tensorrt(nvinfer1::TensorFormat format);
[[nodiscard]] nvinfer1::TensorFormat to_tensorrt(Layout layout);

/// Fails for a type, format or shape that Graft does not have.
[[nodiscard]] Status from_tensorrt(const nvinfer1::PluginTensorDesc& desc, TensorDesc& result);

/// The value of a plugin field as `wanted`. Narrower numbers widen; anything else of another type is refused.
/// The message names the field, what was found and what is allowed.
[[nodiscard]] Status from_tensorrt(const nvinfer1::PluginField& field, AttributeType wanted, AttributeValue& result);

/// The field type under which an attribute is announced and serialized.
[[nodiscard]] nvinfer1::PluginFieldType field_type(AttributeType type);

/// Points into `value`, which has to outlive the field.
[[nodiscard]] nvinfer1::PluginField to_field(const char* name, const AttributeValue& value);

/// Runs the operator's shape inference on TensorRT's dimension expressions, and on those of shape inputs' values.
[[nodiscard]] Status infer_shapes(const Operator& op, std::span<const nvinfer1::DimsExprs> inputs,
                                  std::span<const nvinfer1::DimsExprs> shape_inputs,
                                  std::span<nvinfer1::DimsExprs> outputs, nvinfer1::IExprBuilder& builder);

}  // namespace graft::tensorrt
