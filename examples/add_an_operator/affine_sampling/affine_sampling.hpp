// AffineSampling: the positions at which an affine transform samples an image, as in ONNX's AffineGrid and PyTorch's
// affine_grid.
#pragma once

#include <stdexcept>

#include "graft/operator/define_operator.hpp"

namespace my {

struct AffineSampling {
  static constexpr auto name = "AffineSampling";
  static constexpr int version = 1;
  static constexpr auto doc =
      "grid[n, ..., y, x, :] = theta[n] * (x, y, ..., 1), the pixels' places between -1 and 1 after a transform.";
  static constexpr auto source = "ONNX AffineGrid 20; torch.nn.functional.affine_grid";
  static constexpr auto why_plugin = "TensorRT-RTX has no layer for AffineGrid";

  bool align_corners = false;

  static constexpr auto attributes() {
    return std::tuple{graft::attribute("align_corners", &AffineSampling::align_corners,
                                       "-1 and 1 are the centers of the outermost pixels, not their edges")};
  }
  static constexpr auto ports() {
    return std::array{graft::input("theta", "T", "N,2,3 or N,3,4", "a transform for each image"),
                      graft::shape_input("size", "4 or 5", "of the images: N,C,H,W or N,C,D,H,W"),
                      graft::output("grid", "T", "N,H,W,2 or N,D,H,W,3", "places to sample")};
  }
  static constexpr auto types() {
    using enum graft::DType;
    return std::array{graft::TypeConstraint("T", f32, f16, bf16)};
  }
  static graft::OnnxForm onnx_form() { return {.name = "AffineGrid"}; }
  /// `inputs` has the shape of `theta` and the values of `size`, which may be expressions of other sizes.
  static std::vector<graft::Shape> infer_shapes(std::span<const graft::Shape> inputs) {
    const graft::Shape& theta = inputs[0];
    const graft::Shape& size = inputs[1];
    if (theta.size() != 3 || (size.size() != 4 && size.size() != 5)) {
      throw std::invalid_argument("`theta` has rank " + std::to_string(theta.size()) + " and `size` " +
                                  std::to_string(size.size()) + " values, allowed are 3, and 4 or 5");
    }
    graft::Shape grid{theta[0]};
    grid.insert(grid.end(), size.begin() + 2, size.end());
    grid.emplace_back(static_cast<std::int64_t>(size.size()) - 2);
    return {grid};
  }
  /// Checks the sizes of the output, from which kernels read the values of `size`: they do not get `size` itself.
  static graft::Status check(const graft::Problem& problem) {
    const graft::Extents& theta = problem.inputs[0].extents;
    const graft::Extents& grid = problem.outputs[0].extents;
    const int axes = grid.rank() - 2;
    const bool fits = theta.rank() == 3 && (axes == 2 || axes == 3) && grid[axes + 1] == axes &&
                      theta == graft::Extents{grid[0], axes, axes + 1};
    if (fits) return {};
    return graft::invalid_argument("AffineSampling: `theta` is " + to_string(theta) + " and `grid` " + to_string(grid) +
                                   ", allowed are N,2,3 and N,H,W,2, or N,3,4 and N,D,H,W,3");
  }
  /// Returns the ONNX function, in which `size` is a tensor.
  [[nodiscard]] std::optional<graft::Function> function(const graft::FunctionInputs& /*inputs*/) const {
    const std::string places =
        "theta32 = Cast<to=1>(theta)\n"
        "two = Constant<value_ints=[2]>()\n"
        "all = Constant<value_ints=[9]>()\n"
        "spatial = Slice(size, two, all)\n"
        "zeros = ConstantOfShape(spatial)\n"
        "falses = Cast<to=9>(zeros)\n"
        "trues = Not(falses)\n"
        "index = NonZero(trues)\n"
        "index32 = Cast<to=1>(index)\n"
        "spatial32 = Cast<to=1>(spatial)\n"
        "column = Constant<value_ints=[1]>()\n"
        "sizes = Unsqueeze(spatial32, column)\n"
        "one = Constant<value_float=1.0>()\n"
        "last = Sub(sizes, one)\n"
        "doubled = Add(index32, index32)\n"
        "centered = Sub(doubled, last)\n";
    const std::string transformed =
        "place = Div(centered, divisor)\n"
        "from = Constant<value_ints=[-1]>()\n"
        "to = Constant<value_ints=[-9]>()\n"
        "axis = Constant<value_ints=[0]>()\n"
        "back = Constant<value_ints=[-1]>()\n"
        "x_first = Slice(place, from, to, axis, back)\n"
        "x = Slice(place, axis, column, axis)\n"
        "nothing = Sub(x, x)\n"
        "ones = Add(nothing, one)\n"
        "homogeneous = Concat<axis=0>(x_first, ones)\n"
        "product = MatMul(theta32, homogeneous)\n"
        "points = Transpose<perm=[0, 2, 1]>(product)\n"
        "images = Shape<start=0, end=1>(theta)\n"
        "axes = Shape(spatial)\n"
        "target = Concat<axis=0>(images, spatial, axes)\n"
        "grid32 = Reshape<allowzero=1>(points, target)\n"
        "grid = CastLike(grid32, theta)";
    if (align_corners)
      return graft::Function{"AffineSampling_corners", places + "divisor = Max(last, one)\n" + transformed};
    return graft::Function{name, places + "divisor = Identity(sizes)\n" + transformed};
  }
};

graft::Status run(const AffineSampling& op, const graft::Problem& problem, const graft::Buffers& buffers,
                  const graft::CpuContext& context);
std::span<const graft::Variant<AffineSampling>> cuda_kernels(const AffineSampling& op);

}  // namespace my
