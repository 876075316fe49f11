// Convolutions and products that converters of several operators use.
#pragma once

#include "import/tensorflow/node_converter.hpp"

namespace graft::tensorflow {

onnx::Value* convolved(NodeConverter& node);            ///< Conv2D and Conv3D of inputs 0 and 1.
onnx::Value* depthwise_convolved(NodeConverter& node);  ///< DepthwiseConv2dNative of inputs 0 and 1.
onnx::Value* normalized(NodeConverter& node);           ///< FusedBatchNorm of inputs 0 to 4.
onnx::Value* multiplied(NodeConverter& node);           ///< MatMul and BatchMatMul of inputs 0 and 1.

}  // namespace graft::tensorflow
