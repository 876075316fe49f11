// Snake: y = x + sin(alpha * x)^2 / alpha, an activation for periodic signals.
#pragma once

#include <cmath>

#include "graft/operator/elementwise.hpp"

namespace my {

struct Snake : graft::Elementwise {
  static constexpr auto name = "Snake";
  static constexpr int version = 1;
  static constexpr auto doc = "y = x + sin(alpha * x)^2 / alpha, element by element.";
  static constexpr auto source =
      "Ziyin et al. 2020, Neural Networks Fail to Learn Periodic Functions and How to Fix It";
  static constexpr auto why_plugin = "TensorRT would run five layers, each of which reads and writes the tensor";

  float alpha = 1;

  static constexpr auto attributes() {
    return with_scales(attribute("alpha", &Snake::alpha, "frequency", graft::positive_and_finite()));
  }
  template <class T>
  GRAFT_HOST_DEVICE T apply(T x) const {
    using std::sin;
    const T sine = sin(T(alpha) * x);
    return x + sine * sine / T(alpha);
  }
  static std::optional<graft::Function> function(const graft::FunctionInputs& inputs) {
    return graft::function_in_f32(name, inputs.dtype,
                                  "a = Constant<value_float=@alpha>()\n"
                                  "angle = Mul(a, x32)\n"
                                  "sine = Sin(angle)\n"
                                  "square = Mul(sine, sine)\n"
                                  "ripple = Div(square, a)\n"
                                  "y32 = Add(x32, ripple)");
  }
};

graft::Status run(const Snake& op, const graft::Problem& problem, const graft::Buffers& buffers,
                  const graft::CpuContext& context);
std::span<const graft::Variant<Snake>> cuda_kernels(const Snake& op);

}  // namespace my
