// RmsNorm: y = x / sqrt(mean(x * x) + epsilon), the mean along the last axis.
#pragma once

#include <stdexcept>

#include "graft/operator/define_operator.hpp"
#include "graft/operator/function.hpp"

namespace my_ops {

struct RmsNorm {
  static constexpr auto name = "RmsNorm";
  static constexpr int version = 1;
  static constexpr auto doc = "y = x / sqrt(mean(x * x) + epsilon), the mean along the last axis.";
  static constexpr auto source = "Zhang and Sennrich 2019, Root Mean Square Layer Normalization";
  static constexpr auto why_plugin = "TensorRT would run it as several layers";

  float epsilon = 1e-5F;

  static constexpr auto attributes() {
    return std::tuple{graft::attribute("epsilon", &RmsNorm::epsilon, "below the root", graft::positive_and_finite())};
  }
  static constexpr auto ports() {
    return std::array{graft::input("x", "T", "...,C", "of rank 1 or more"),
                      graft::output("y", "T", "as x", "of the type of x")};
  }
  /// The types that each name in the ports may have.
  static constexpr auto types() {
    using enum graft::DType;
    return std::array{graft::TypeConstraint("T", f32, f16, bf16)};
  }
  /// Infers the shape of each output. The message of an exception becomes the error of the node.
  static std::vector<graft::Shape> infer_shapes(std::span<const graft::Shape> inputs) {
    if (inputs[0].empty()) throw std::invalid_argument("`x` is a scalar, allowed is rank 1 or more");
    return {inputs[0]};
  }
  /// Returns the operator as standard ONNX operators, for runtimes without this library.
  static std::optional<graft::Function> function(const graft::FunctionInputs& inputs) {
    return graft::function_in_f32(name, inputs.dtype,
                                  "square = Mul(x32, x32)\n"
                                  "mean = ReduceMean<axes=[-1], keepdims=1>(square)\n"
                                  "epsilon = Constant<value_float=@epsilon>()\n"
                                  "sum = Add(mean, epsilon)\n"
                                  "root = Sqrt(sum)\n"
                                  "y32 = Div(x32, root)");
  }
};

graft::Status run(const RmsNorm& op, const graft::Problem& problem, const graft::Buffers& buffers,
                  const graft::CpuContext& context);
std::span<const graft::Variant<RmsNorm>> cuda_kernels(const RmsNorm& op);

}  // namespace my_ops
