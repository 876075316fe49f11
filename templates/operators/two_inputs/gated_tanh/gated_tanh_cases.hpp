// Cases of GatedTanh: the problems with which its kernels are tested.
#pragma once

#include "gated_tanh/gated_tanh.hpp"
#include "ops/operator_case.hpp"

namespace my_ops {

/// Returns cases of two sets of attributes and every type with many sizes, and with values at the limits of each type,
/// and cases that must be refused.
inline std::vector<graft::ops::OperatorCase> cases(const GatedTanh& /*tag*/) {
  using graft::ops::Fill;
  const auto op = graft::ops::make_operator(graft::operator_type<GatedTanh>(), {});
  const auto steep = graft::ops::make_operator(graft::operator_type<GatedTanh>(), {{"steepness", 1.5F}});
  std::vector<graft::ops::OperatorCase> cases;
  const auto add = [&](const graft::TensorDesc& x, const graft::TensorDesc& gate, const std::string& what,
                       Fill fill) -> graft::ops::OperatorCase& {
    return cases.emplace_back(graft::ops::OperatorCase{.name = graft::ops::case_name(x) + what,
                                                       .op = op,
                                                       .inputs = {x, gate},
                                                       .fill = fill,
                                                       .tolerance = graft::ops::f32_error(12)});
  };
  for (const graft::DType dtype : {graft::DType::f32, graft::DType::f16, graft::DType::bf16}) {
    for (const std::int64_t count : {0, 1, 255, 256, 257, 10007}) {
      const graft::TensorDesc desc{.dtype = dtype, .extents = {count}};
      add(desc, desc, "", Fill::normal);
    }
    const graft::TensorDesc desc{.dtype = dtype, .extents = {2, 3, 5, 7}};
    add(desc, desc, "_steep", Fill::normal).op = steep;
    add(desc, desc, "_zeros", Fill::zeros);
    add(desc, desc, "_huge", Fill::huge);
    add(desc, desc, "_tiny", Fill::tiny);
    add(desc, desc, "_special", Fill::special);
  }
  add({.extents = {2, 3}}, {.extents = {3, 2}}, "_shapes", Fill::normal).refused = "allowed is the shape of `x`";
  add({.extents = {8}}, {.dtype = graft::DType::f16, .extents = {8}}, "_types", Fill::normal).refused = "does not take";
  return cases;
}

/// Returns the problems that `graft bench` times.
inline std::vector<graft::ops::TimedCase> timings(const GatedTanh& /*tag*/) {
  std::vector<graft::ops::TimedCase> timings;
  for (const graft::DType dtype : {graft::DType::f32, graft::DType::f16, graft::DType::bf16}) {
    const graft::TensorDesc desc{.dtype = dtype, .extents = {1, 64, 56, 56}};
    timings.push_back({.inputs = {desc, desc}});
  }
  return timings;
}

}  // namespace my_ops
