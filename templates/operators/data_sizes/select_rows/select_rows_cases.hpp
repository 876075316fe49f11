// Cases of SelectRows: the problems with which its kernels are tested.
#pragma once

#include "ops/operator_case.hpp"
#include "select_rows/select_rows.hpp"

namespace my_ops {

/// Returns cases of every type with many sizes, with all rows and no row selected, and with values at the limits of
/// each type, and cases that must be refused.
inline std::vector<graft::ops::OperatorCase> cases(const SelectRows& /*tag*/) {
  using graft::ops::Fill;
  std::vector<graft::ops::OperatorCase> cases;
  const auto add = [&](graft::DType dtype, std::int64_t rows, std::int64_t columns, const std::string& what,
                       Fill fill = Fill::normal, float threshold = 0.25F) -> graft::ops::OperatorCase& {
    const graft::TensorDesc x{.dtype = dtype, .extents = {rows, columns}};
    return cases.emplace_back(graft::ops::OperatorCase{
        .name = graft::ops::case_name(x) + what,
        .op = graft::ops::make_operator(graft::operator_type<SelectRows>(), {{"threshold", threshold}}),
        .inputs = {x, {.dtype = dtype, .extents = {rows}}},
        .fill = fill});
  };
  for (const graft::DType dtype : {graft::DType::f32, graft::DType::f16, graft::DType::bf16}) {
    for (const std::int64_t rows : {0, 1, 31, 33, 1023, 1025, 5000}) add(dtype, rows, 4, "");
    add(dtype, 40, 0, "");
    add(dtype, 40, 3, "_all", Fill::normal, -1e4F);
    add(dtype, 40, 3, "_none", Fill::normal, 1e4F);
    add(dtype, 40, 3, "_zeros", Fill::zeros, 0);
    add(dtype, 40, 3, "_huge", Fill::huge);
    add(dtype, 40, 3, "_tiny", Fill::tiny, 0);
    add(dtype, 70, 3, "_special", Fill::special);
  }
  add(graft::DType::f32, 4, 3, "_scores").inputs[1].extents = {5};
  cases.back().refused = "`score` has 5 elements";
  add(graft::DType::f32, 4, 3, "_rank").inputs[0].extents = {12};
  cases.back().refused = "allowed are 2 and 1";
  add(graft::DType::i32, 4, 3, "").refused = "does not take";
  return cases;
}

/// Returns the problems that `graft bench` times.
inline std::vector<graft::ops::TimedCase> timings(const SelectRows& /*tag*/) {
  std::vector<graft::ops::TimedCase> timings;
  for (const graft::DType dtype : {graft::DType::f32, graft::DType::f16, graft::DType::bf16}) {
    timings.push_back({.inputs = {{.dtype = dtype, .extents = {8400, 84}}, {.dtype = dtype, .extents = {8400}}}});
  }
  return timings;
}

}  // namespace my_ops
