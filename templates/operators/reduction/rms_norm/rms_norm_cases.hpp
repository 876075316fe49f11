// Cases of RmsNorm: the problems with which its kernels are tested.
#pragma once

#include "ops/operator_case.hpp"
#include "rms_norm/rms_norm.hpp"

namespace my_ops {

/// Returns cases of every type with rows of many lengths, and with values at the limits of each type, and cases that
/// must be refused.
inline std::vector<graft::ops::OperatorCase> cases(const RmsNorm& /*tag*/) {
  using graft::ops::Fill;
  const auto op = graft::ops::make_operator(graft::operator_type<RmsNorm>(), {{"epsilon", 1e-3F}});
  std::vector<graft::ops::OperatorCase> cases;
  const auto add = [&](const graft::TensorDesc& x, const std::string& what, Fill fill) -> graft::ops::OperatorCase& {
    return cases.emplace_back(graft::ops::OperatorCase{.name = graft::ops::case_name(x) + what,
                                                       .op = op,
                                                       .inputs = {x},
                                                       .fill = fill,
                                                       .tolerance = graft::ops::f32_error(2)});
  };
  for (const graft::DType dtype : {graft::DType::f32, graft::DType::f16, graft::DType::bf16}) {
    for (const std::int64_t columns : {0, 1, 31, 32, 33, 1000}) {
      add({.dtype = dtype, .extents = {3, 5, columns}}, "", Fill::normal);
    }
    add({.dtype = dtype, .extents = {7}}, "", Fill::normal);
    add({.dtype = dtype, .extents = {4, 65}}, "_zeros", Fill::zeros);
    add({.dtype = dtype, .extents = {4, 65}}, "_huge", Fill::huge);
    add({.dtype = dtype, .extents = {4, 65}}, "_tiny", Fill::tiny);
    add({.dtype = dtype, .extents = {4, 65}}, "_special", Fill::special);
  }
  add({.extents = {}}, "_scalar", Fill::normal).refused = "rank 1 or more";
  add({.dtype = graft::DType::i32, .extents = {8}}, "", Fill::normal).refused = "does not take i32 8";
  return cases;
}

/// Returns the problems that `graft bench` times.
inline std::vector<graft::ops::TimedCase> timings(const RmsNorm& /*tag*/) {
  return graft::ops::in_formats({graft::DType::f32, graft::DType::f16, graft::DType::bf16},
                                {{.inputs = {{.extents = {128, 1024}}}}});
}

}  // namespace my_ops
