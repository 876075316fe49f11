// Cases of NonZero: as many elements as a block or tile holds, and one more or fewer; all ranks; few, half and all of
// the elements set.
#pragma once

#include "ops/non_zero/non_zero.hpp"
#include "ops/operator_case.hpp"

namespace graft::ops {

inline constexpr std::array non_zero_types{DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64};

[[nodiscard]] inline std::vector<OperatorCase> cases(const NonZero& /*tag*/) {
  std::vector<OperatorCase> cases;
  const auto op = make_operator(operator_type<NonZero>(), {});
  const auto add = [&](DType dtype, const Extents& extents, Fill fill, const std::string& what) -> OperatorCase& {
    const TensorDesc x{.dtype = dtype, .extents = extents};
    return cases.emplace_back(OperatorCase{.name = case_name(x) + what, .op = op, .inputs = {x}, .fill = fill});
  };
  for (const DType dtype : non_zero_types) {
    for (const std::int64_t size : {0, 1, 31, 32, 33, 1023, 1025, 8191, 8193, 32767, 32768, 32769, 100'003}) {
      add(dtype, {size}, Fill::sparse, "");
    }
    add(dtype, {3, 5}, Fill::sparse, "");
    add(dtype, {2, 3, 5, 7}, Fill::sparse, "");
    add(dtype, {1, 1, 1}, Fill::sparse, "");
    add(dtype, {2, 1, 3, 2, 1, 2, 3, 2}, Fill::sparse, "");
    add(dtype, {3, 0, 2}, Fill::sparse, "");
    add(dtype, {16, 3, 33, 65}, Fill::sparse, "");
    add(dtype, {40, 50}, Fill::normal, "_all");
    add(dtype, {40, 1000}, Fill::normal, "_all");
    add(dtype, {40, 50}, Fill::zeros, "_none");
    add(dtype, {40, 1000}, Fill::zeros, "_none");
    add(dtype, {300, 1000}, Fill::sparse, "");
    add(dtype, {37, 5}, Fill::sparse, "_shifted").shift = 1;
  }
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    add(dtype, {40, 50}, Fill::special, "_special");  // NaN counts as non-zero; both zeros do not.
    add(dtype, {40, 50}, Fill::tiny, "_tiny");
  }
  add(DType::f32, {}, Fill::normal, "").refused = "`x` is a scalar";
  add(DType::i8, {4}, Fill::normal, "").refused = "does not take";
  add(DType::boolean, {4}, Fill::normal, "").refused = "does not take";
  return cases;
}

[[nodiscard]] inline std::vector<TimedCase> timings(const NonZero& /*tag*/) {
  std::vector<TimedCase> timings;
  for (const DType dtype : {DType::f32, DType::f16, DType::i32, DType::i64}) {
    timings.push_back({.inputs = {{.dtype = dtype, .extents = {8400}}}});
    timings.push_back({.inputs = {{.dtype = dtype, .extents = {8400, 80}}}});
    timings.push_back({.inputs = {{.dtype = dtype, .extents = {16, 3, 512, 512}}}});
  }
  return timings;
}

}  // namespace graft::ops
