// PixelUnshuffle: space to depth, with PyTorch's order of channels.
#pragma once

#include <stdexcept>

#include "graft/operator/define_operator.hpp"

namespace my {

struct PixelUnshuffle {
  static constexpr auto name = "PixelUnshuffle";
  static constexpr int version = 1;
  static constexpr auto doc =
      "Squares of factor x factor pixels become channels: y[n, (c * factor + i) * factor + j, h, w] = "
      "x[n, c, h * factor + i, w * factor + j].";
  static constexpr auto source = "torch.nn.PixelUnshuffle; ONNX's SpaceToDepth has the channels in another order";
  static constexpr auto why_plugin = "TensorRT would reshape, transpose and reshape";

  std::int64_t factor = 2;

  static constexpr auto attributes() {
    return std::tuple{
        graft::attribute("factor", &PixelUnshuffle::factor, "the side of a square", {.lowest = 1, .highest = 1024})};
  }
  static constexpr auto ports() {
    return std::array{graft::input("x", "T", "N,C,H,W", "H and W are multiples of factor"),
                      graft::output("y", "T", "N,C*factor*factor,H/factor,W/factor", "of the type of x")};
  }
  /// The element types for which "T" stands.
  static constexpr auto types() {
    using enum graft::DType;
    return std::array{graft::TypeConstraint("T", f32, f16, bf16)};
  }
  /// Returns the shape of y. Sizes may be numbers, or names and expressions; the arithmetic is the same.
  [[nodiscard]] std::vector<graft::Shape> infer_shapes(std::span<const graft::Shape> inputs) const {
    const graft::Shape& x = inputs[0];
    if (x.size() != 4) throw std::invalid_argument("`x` has rank " + std::to_string(x.size()) + ", allowed is 4");
    return {{x[0], x[1] * (factor * factor), floor_div(x[2], factor), floor_div(x[3], factor)}};
  }
  /// Checks the sizes at run time, which are unknown to infer_shapes where they are names.
  [[nodiscard]] graft::Status check(const graft::Problem& problem) const {
    const graft::Extents& x = problem.inputs[0].extents;
    if (x[2] % factor == 0 && x[3] % factor == 0) return {};
    return graft::invalid_argument("PixelUnshuffle: `x` is " + to_string(x) +
                                   ", allowed are a height and a width that are multiples of " +
                                   std::to_string(factor));
  }
  static std::optional<graft::Function> function(const graft::FunctionInputs& /*inputs*/) {
    return graft::Function{name,
                           "squares = SpaceToDepth<blocksize=@factor>(x)\n"
                           "side = Constant<value_int=@factor>()\n"
                           "area = Mul(side, side)\n"
                           "one = Constant<value_ints=[1]>()\n"
                           "area_list = Reshape(area, one)\n"
                           "batch = Shape<start=0, end=1>(x)\n"
                           "channels = Shape<start=1, end=2>(x)\n"
                           "image = Shape<start=2>(squares)\n"
                           "apart = Concat<axis=0>(batch, area_list, channels, image)\n"
                           "pieces = Reshape(squares, apart)\n"
                           "swapped = Transpose<perm=[0, 2, 1, 3, 4]>(pieces)\n"
                           "together = Shape(squares)\n"
                           "y = Reshape(swapped, together)"};
  }
};

graft::Status run(const PixelUnshuffle& op, const graft::Problem& problem, const graft::Buffers& buffers,
                  const graft::CpuContext& context);
std::span<const graft::Variant<PixelUnshuffle>> cuda_kernels(const PixelUnshuffle& op);

}  // namespace my
