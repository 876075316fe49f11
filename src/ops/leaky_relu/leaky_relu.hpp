// LeakyReLU: y = x >= 0 ? x : alpha * x.
#pragma once

#include "graft/operator/elementwise.hpp"

namespace graft::ops {

struct LeakyReLU : Elementwise {
  static constexpr auto name = "LeakyReLU";
  static constexpr int version = 1;
  static constexpr auto doc = "y = x >= 0 ? x : alpha * x, element by element.";
  static constexpr auto source =
      "Maas et al. 2013, Rectifier Nonlinearities Improve Neural Network Acoustic Models; torch.nn.LeakyReLU";
  static constexpr auto why_plugin =
      "TensorRT's own LeakyRelu has no int8 input and output, and TensorRT 11.0 removed the plugin LReLU_TRT";
  static constexpr auto why_plugin_for_floats = "TensorRT 11.0 removed the plugin LReLU_TRT";

  float alpha = 0.01F;

  static constexpr auto attributes() {
    return with_scales(attribute("alpha", &LeakyReLU::alpha, "the slope for negative x"));
  }
  template <class T>
  GRAFT_HOST_DEVICE T apply(T x) const {
    return x >= T(0) ? x : T(alpha) * x;
  }
  static std::optional<Function> function(const FunctionInputs& inputs) {
    return function_in_f32(name, inputs.dtype, "y32 = LeakyRelu<alpha=@alpha>(x32)");
  }
  static std::optional<std::string> native_form(const FunctionInputs& inputs) {
    if (!is_floating_point(inputs.dtype)) return std::nullopt;
    return "y = LeakyRelu<alpha=@alpha>(x)";
  }
  static std::vector<NativeEquivalent> native_equivalents() {
    return {{.op = "LeakyRelu", .attributes = {{"alpha", "alpha"}}}};
  }
  static std::vector<DropIn> drop_ins() {
    return {{"LReLU_TRT",
             "1",
             {{.name = "negSlope", .attribute = "alpha", .is_required = true}},
             "NVIDIA's plugin of TensorRT 5 to 10, removed in 11.0"},
            {"LeakyReluPlugin",
             "1",
             {{"alpha", "alpha"}, {"negSlope", "alpha"}},
             "the plugin name that hand-written networks use"}};
  }
};

[[nodiscard]] Status run(const LeakyReLU& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<LeakyReLU>> cuda_kernels(const LeakyReLU& op);

}  // namespace graft::ops
