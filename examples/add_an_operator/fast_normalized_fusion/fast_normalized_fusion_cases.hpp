// The cases with which FastNormalizedFusion's kernels are tested.
#pragma once

#include "fast_normalized_fusion/fast_normalized_fusion.hpp"
#include "ops/operator_case.hpp"

namespace my {

/// Returns every type with many sizes, from one tensor to as many as a node may have, and problems that must be
/// refused.
inline std::vector<graft::ops::OperatorCase> cases(const FastNormalizedFusion& /*tag*/) {
  using graft::ops::Fill;
  constexpr std::size_t most_maps = graft::TypeRow::max_ports - 2;
  std::vector<graft::ops::OperatorCase> cases;
  const auto add = [&](const graft::TensorDesc& x, std::size_t maps, const std::string& what,
                       Fill fill = Fill::normal) -> graft::ops::OperatorCase& {
    std::vector<graft::TensorDesc> inputs(1 + maps, x);
    inputs[0] = {.dtype = x.dtype, .extents = {static_cast<std::int64_t>(maps)}};
    return cases.emplace_back(graft::ops::OperatorCase{
        .name = graft::ops::case_name(x) + "_of_" + std::to_string(maps) + what,
        .op = graft::ops::make_operator(graft::operator_type<FastNormalizedFusion>(), {{"epsilon", 1e-3F}}),
        .inputs = std::move(inputs),
        .fill = fill,
        .tolerance = graft::ops::f32_error(40),
        .absolute = 2e-5});  // terms of both signs cancel out
  };
  for (const graft::DType dtype : {graft::DType::f32, graft::DType::f16, graft::DType::bf16}) {
    for (const std::int64_t count : {0, 1, 255, 257, 10007}) add({.dtype = dtype, .extents = {count}}, 3, "");
    const graft::TensorDesc images{.dtype = dtype, .extents = {2, 3, 5, 7}};
    for (const std::size_t maps : {std::size_t{1}, std::size_t{2}, most_maps}) add(images, maps, "");
    add(images, 2, "_zeros", Fill::zeros);
    add(images, 2, "_tiny", Fill::tiny);
    add(images, 2, "_special", Fill::special);
  }
  const graft::TensorDesc x{.extents = {2, 3}};
  add(x, 3, "_weights").inputs[0].extents = {4};
  cases.back().refused = "`w` has 4 elements, allowed is one for each x: 3";
  add(x, 3, "_shapes").inputs[3].extents = {3, 2};
  cases.back().refused = "`x_3` is 3x2, allowed is the shape of `x_1`, 2x3";
  add(x, 3, "_types").inputs[3].dtype = graft::DType::f16;
  cases.back().refused = "does not take";
  add(x, most_maps + 1, "").refused = "takes 2 to 31 inputs";
  add(x, 0, "").refused = "takes 2 to 31 inputs";
  return cases;
}

/// Returns the cases that `graft bench` times.
inline std::vector<graft::ops::TimedCase> timings(const FastNormalizedFusion& /*tag*/) {
  std::vector<graft::ops::TimedCase> timings;
  for (const graft::DType dtype : {graft::DType::f32, graft::DType::f16, graft::DType::bf16}) {
    const graft::TensorDesc x{.dtype = dtype, .extents = {1, 64, 64, 64}};
    timings.push_back({.inputs = {{.dtype = dtype, .extents = {3}}, x, x, x}});
  }
  return timings;
}

}  // namespace my
