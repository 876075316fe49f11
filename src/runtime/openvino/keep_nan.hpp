// Makes the CPU engine propagate NaN and infinities as ONNX Runtime does.
#pragma once

namespace ov {
class Model;
}

namespace graft::runtime {

/// The key in the rt_info of a node that no NaN reaches, so that the node needs no correction.
inline constexpr const char* without_nan = "graft.without_nan";

/// y = Relu(x) becomes Select(x != x, x, y), and other operators likewise, also in sub-graphs. OpenVINO's CPU plugin
/// computes Relu, Clamp, Exp, HardSigmoid, Maximum, Minimum and pooling with vector instructions that return the number
/// if the other operand is NaN: an overflow that ends in NaN would look like 0 in all later nodes. Also corrected:
/// Softmax, LogSoftmax, ReduceMax, ReduceMin, Gelu and Mod of infinities or NaN, comparisons with NaN, and casts to
/// boolean. The cost is one more pass over the tensor, and no fusion with the convolution before the node.
void keep_nan(ov::Model& model);

}  // namespace graft::runtime
