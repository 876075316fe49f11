// The ports, type rows, scales and shapes that all elementwise operators (y[i] = apply(x[i])) share.
#pragma once

#include <array>
#include <span>
#include <tuple>
#include <vector>

#include "graft/operator/define_operator.hpp"
#include "graft/operator/function.hpp"
#include "graft/operator/quantization.hpp"

/// Marks functions that both the reference kernel and the CUDA kernel call.
#ifdef __CUDACC__
#define GRAFT_HOST_DEVICE __host__ __device__
#else
#define GRAFT_HOST_DEVICE
#endif

namespace graft {

/// The base of elementwise definitions. The definition adds a name, attributes and `template <class T>
/// GRAFT_HOST_DEVICE T apply(T x) const`; the reference kernel calls it with double, the CUDA kernel with float.
struct Elementwise {
  float x_scale = 1;
  float y_scale = 1;

  static constexpr auto ports() {
    return std::array{input("x", "T", "any", "of any rank").scaled_by("x_scale"),
                      output("y", "T", "as x", "of the type of x").scaled_by("y_scale")};
  }
  static constexpr auto types() { return std::array{every_format_and_f8}; }
  /// Returns the attributes of a definition, followed by x_scale and y_scale.
  template <class... Attributes>
  static constexpr auto with_scales(const Attributes&... attributes) {
    return std::tuple{attributes..., attribute("x_scale", &Elementwise::x_scale, x_scale_doc, positive_and_finite()),
                      attribute("y_scale", &Elementwise::y_scale, y_scale_doc, positive_and_finite())};
  }
  static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) { return {inputs[0]}; }
};

}  // namespace graft
