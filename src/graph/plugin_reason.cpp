// Why TensorRT runs a node of Graft as a plugin.
#include "graph/plugin_reason.hpp"

#include <algorithm>
#include <array>

#include "graph/operator_node.hpp"

namespace graft {
namespace {

struct FloatReason {
  std::string_view op;
  std::string_view reason;
};

/// Of operators whose own reason begins with int8, for nodes of floating-point numbers.
constexpr std::array of_floats{
    FloatReason{"Convolution",
                "its weights are fields of the plugin, or its activation is applied to the sums before they are "
                "stored, which one layer of TensorRT does not do; or an older network names the plugin CONVOLUTION"},
    FloatReason{"InstanceNorm",
                "TensorRT's own InstanceNormalization runs the activation as a layer of its own; the plugin reads the "
                "tensor once and keeps the statistics in f32"},
    FloatReason{"LeakyReLU", "plugins named LReLU_TRT left TensorRT in 11.0"},
    FloatReason{"Padding",
                "TensorRT's padding has no symmetric mode; plugins named ReflectPad did not come with TensorRT"},
    FloatReason{"Upsampling",
                "TensorRT's Resize rounds coordinates to float; plugins named UpsamplePlugin and ResizeNearest_TRT are "
                "no part of TensorRT 11"},
};

}  // namespace

std::string reason_for_plugin(const Node& node) {
  for (const std::string_view note : {reason_note, keep_note}) {
    if (const auto said = node.metadata.find(std::string(note)); said != node.metadata.end()) return said->second;
  }
  const OperatorType* type = find_operator_for(node).type;
  if (type == nullptr) return {};
  const Value* x = node.input(0);
  if (x != nullptr && x->type == ElementType::i8) return std::string(type->why_plugin);
  const auto* of_float =
      std::find_if(of_floats.begin(), of_floats.end(), [&](const FloatReason& each) { return each.op == type->name; });
  return std::string(of_float == of_floats.end() ? type->why_plugin : of_float->reason);
}

}  // namespace graft
