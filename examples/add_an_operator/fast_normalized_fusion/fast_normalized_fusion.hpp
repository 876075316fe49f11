// FastNormalizedFusion: a weighted mean of any number of tensors, as EfficientDet fuses feature maps.
#pragma once

#include <stdexcept>

#include "graft/operator/define_operator.hpp"

namespace my {

struct FastNormalizedFusion {
  static constexpr auto name = "FastNormalizedFusion";
  static constexpr int version = 1;
  static constexpr auto doc =
      "y = sum(max(w_i, 0) * x_i) / (sum(max(w_i, 0)) + epsilon), element by element of the tensors x_1, x_2, ...";
  static constexpr auto source = "Tan et al. 2020, EfficientDet: Scalable and Efficient Object Detection";
  static constexpr auto why_plugin = "one kernel reads each tensor once and writes none in between";

  float epsilon = 1e-4F;

  static constexpr auto attributes() {
    return std::tuple{graft::attribute("epsilon", &FastNormalizedFusion::epsilon, "keeps the sum of weights above 0",
                                       graft::positive_and_finite())};
  }
  static constexpr auto ports() {
    return std::array{graft::input("w", "T", "n", "a weight for each x"),
                      graft::variadic_input("x", "T", "any", "the tensors, all of one shape"),
                      graft::output("y", "T", "as x", "their weighted mean")};
  }
  static constexpr auto types() {
    using enum graft::DType;
    return std::array{graft::TypeConstraint("T", f32, f16, bf16)};
  }
  /// `inputs` has the shape of `w` and of each x.
  static std::vector<graft::Shape> infer_shapes(std::span<const graft::Shape> inputs) {
    if (inputs[0].size() != 1) {
      throw std::invalid_argument("`w` has rank " + std::to_string(inputs[0].size()) + ", allowed is 1");
    }
    return {inputs[1]};
  }
  static graft::Status check(const graft::Problem& problem) {
    const auto maps = problem.inputs.subspan(1);
    const std::int64_t weights = problem.inputs[0].extents[0];
    if (weights != std::ssize(maps)) {
      return graft::invalid_argument("FastNormalizedFusion: `w` has " + std::to_string(weights) +
                                     " elements, allowed is one for each x: " + std::to_string(maps.size()));
    }
    for (std::size_t i = 1; i < maps.size(); ++i) {
      if (maps[i].extents == maps[0].extents) continue;
      return graft::invalid_argument("FastNormalizedFusion: `x_" + std::to_string(i + 1) + "` is " +
                                     to_string(maps[i].extents) + ", allowed is the shape of `x_1`, " +
                                     to_string(maps[0].extents));
    }
    return {};
  }
  /// Returns the text with `number` in place of each #, and `number` - 1 in place of each %.
  static std::string numbered(std::string_view text, std::size_t number) {
    std::string result;
    for (const char c : text) {
      result += c == '#' ? std::to_string(number) : c == '%' ? std::to_string(number - 1) : std::string(1, c);
    }
    return result;
  }
  /// Returns the ONNX function, whose body and name depend on the number of inputs.
  static std::optional<graft::Function> function(const graft::FunctionInputs& inputs) {
    std::string body =
        "w32 = Cast<to=1>(w)\n"
        "positive = Relu(w32)\n"
        "total = ReduceSum<keepdims=0>(positive)\n"
        "small = Constant<value_float=@epsilon>()\n"
        "divisor = Add(total, small)\n"
        "shares = Div(positive, divisor)\n";
    std::string terms;
    for (std::size_t i = 1; i < inputs.count; ++i) {
      body += numbered(
          "index_# = Constant<value_int=%>()\n"
          "share_# = Gather<axis=0>(shares, index_#)\n"
          "wide_# = Cast<to=1>(x_#)\n"
          "term_# = Mul(wide_#, share_#)\n",
          i);
      terms += numbered(i == 1 ? "term_#" : ", term_#", i);
    }
    body += "mean = Sum(" + terms + ")\n";
    body += "y = CastLike(mean, x_1)";
    return graft::Function{name + ("_" + std::to_string(inputs.count - 1)), body};
  }
};

graft::Status run(const FastNormalizedFusion& op, const graft::Problem& problem, const graft::Buffers& buffers,
                  const graft::CpuContext& context);
std::span<const graft::Variant<FastNormalizedFusion>> cuda_kernels(const FastNormalizedFusion& op);

}  // namespace my
