// The cases with which AffineSampling's kernels are tested.
#pragma once

#include "affine_sampling/affine_sampling.hpp"
#include "ops/operator_case.hpp"

namespace my {

/// Returns every type, images and volumes of many sizes, with both values of `align_corners`, and problems that must be
/// refused.
inline std::vector<graft::ops::OperatorCase> cases(const AffineSampling& /*tag*/) {
  using graft::ops::Fill;
  std::vector<graft::ops::OperatorCase> cases;
  const auto add = [&](graft::DType dtype, const graft::Extents& size, bool corners, const std::string& what = "",
                       Fill fill = Fill::normal) -> graft::ops::OperatorCase& {
    const std::int64_t axes = size.rank() - 2;
    const graft::TensorDesc theta{.dtype = dtype, .extents = {size[0], axes, axes + 1}};
    return cases.emplace_back(graft::ops::OperatorCase{
        .name = graft::ops::case_name({.dtype = dtype, .extents = size}) + (corners ? "_corners" : "") + what,
        .op = graft::ops::make_operator(graft::operator_type<AffineSampling>(),
                                        {{"align_corners", std::int64_t{corners}}}),
        .inputs = {theta},
        .fill = fill,
        .tolerance = graft::ops::f32_error(10),
        .absolute = 4e-6,  // terms of both signs cancel out
        .shape_values = {size}});
  };
  for (const graft::DType dtype : {graft::DType::f32, graft::DType::f16, graft::DType::bf16}) {
    for (const bool corners : {false, true}) {
      for (const graft::Extents& size :
           {graft::Extents{2, 3, 5, 7}, {1, 1, 1, 1}, {3, 2, 1, 300}, {0, 3, 5, 7}, {2, 3, 0, 7}, {2, 1, 3, 4, 5}}) {
        add(dtype, size, corners);
      }
    }
    add(dtype, {2, 3, 5, 7}, false, "_zeros", Fill::zeros);
    add(dtype, {2, 3, 5, 7}, false, "_special", Fill::special);
  }
  add(graft::DType::f32, {2, 3, 5, 7}, false, "_theta").inputs[0].extents = {2, 3, 4};
  cases.back().refused = "`theta` is 2x3x4 and `grid` 2x5x7x2";
  add(graft::DType::f32, {2, 3, 5, 7}, false, "_size").shape_values = {graft::Extents{2, 3, 5}};
  cases.back().refused = "`size` 3 values, allowed are 3, and 4 or 5";
  add(graft::DType::i32, {2, 3, 5, 7}, false).refused = "does not take";
  return cases;
}

}  // namespace my
