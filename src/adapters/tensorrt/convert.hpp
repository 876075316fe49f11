// Converts between TensorRT's types and Graft's.
#pragma once

#include <NvInferRuntime.h>

#include <optional>
#include <span>

#include "graft/operator/operator.hpp"

namespace graft::tensorrt {

[[nodiscard]] std::optional<DType> from_tensorrt(nvinfer1::DataType type);
[[nodiscard]] nvinfer1::DataType to_tensorrt(DType dtype);
[[nodiscard]] std::optional<Layout> from_tensorrt(nvinfer1::TensorFormat format);
[[nodiscard]] nvinfer1::TensorFormat to_tensorrt(Layout layout);

/// Converts TensorRT's description of a tensor and stores it in `result`. Returns an error for a type, a format or a
/// shape that Graft does not support.
[[nodiscard]] Status from_tensorrt(const nvinfer1::PluginTensorDesc& desc, TensorDesc& result);

/// Converts the value of a plugin field to the attribute type `wanted` and stores it in `result`. Narrower numbers are
/// widened. For any other type, returns an error that names the field, its type and the required type.
[[nodiscard]] Status from_tensorrt(const nvinfer1::PluginField& field, AttributeType wanted, AttributeValue& result);

/// Returns the TensorRT field type of an attribute: the creator announces it in getFieldNames, and the plugin
/// serializes the attribute with it.
[[nodiscard]] nvinfer1::PluginFieldType field_type(AttributeType type);

/// Returns a field that points into `value`, which must outlive the field.
[[nodiscard]] nvinfer1::PluginField to_field(const char* name, const AttributeValue& value);

/// Infers the shapes of the outputs and stores them in `outputs` as expressions of `builder`. `shape_inputs` contains
/// the values of the shape inputs, also as dimension expressions.
[[nodiscard]] Status infer_shapes(const Operator& op, std::span<const nvinfer1::DimsExprs> inputs,
                                  std::span<const nvinfer1::DimsExprs> shape_inputs,
                                  std::span<nvinfer1::DimsExprs> outputs, nvinfer1::IExprBuilder& builder);

}  // namespace graft::tensorrt
