// NaN and infinities go through the CPU engine as they go through ONNX Runtime.
#pragma once

namespace ov {
class Model;
}

namespace graft::runtime {

/// In the rt_info of a node: no NaN reaches it, so it needs no selection.
inline constexpr const char* without_nan = "graft.without_nan";

/// The vector instructions behind the plugin's Relu, Clamp, Exp, HardSigmoid, Maximum, Minimum and pooling take a
/// number where the other one is NaN: an overflow that ends in NaN would look like 0 from there on. Puts a selection
/// after each, also in sub-graphs; one pass over the tensor in place of the fusion with the convolution before it.
void keep_nan(ov::Model& model);

}  // namespace graft::runtime
