// Convolutions and products that the converters of several operators use.
#pragma once

#include "import/tensorflow/node_converter.hpp"

namespace graft::tensorflow {

onnx::Value* convolved(NodeConverter& node);            ///< Converts Conv2D or Conv3D of inputs 0 and 1.
onnx::Value* depthwise_convolved(NodeConverter& node);  ///< Converts DepthwiseConv2dNative of inputs 0 and 1.
onnx::Value* normalized(NodeConverter& node);           ///< Converts FusedBatchNorm of inputs 0 to 4.
onnx::Value* multiplied(NodeConverter& node);           ///< Converts MatMul or BatchMatMul of inputs 0 and 1.

}  // namespace graft::tensorflow
