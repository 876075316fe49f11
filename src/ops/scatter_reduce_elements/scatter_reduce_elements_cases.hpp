// Cases of ScatterReduceElements: every axis, fewer and more indices than data, and elements that many updates select.
#pragma once

#include <algorithm>

#include "ops/scatter_cases.hpp"
#include "ops/scatter_reduce_elements/scatter_reduce_elements.hpp"

namespace graft::ops {

/// Maps any integers to indices of the longest axis, from either end; on shorter axes, many are out of range.
inline void place_elements(std::span<HostTensor> inputs) {
  const Extents& data = inputs[0].desc.extents;
  const std::int64_t size = data.rank() == 0 ? 1 : *std::max_element(data.begin(), data.end());
  const auto place = [&](auto* indices) {
    for (std::int64_t i = 0; i < inputs[1].desc.extents.element_count(); ++i) indices[i] = as_index(indices[i], size);
  };
  if (inputs[1].desc.dtype == DType::i32) return place(reinterpret_cast<std::int32_t*>(inputs[1].bytes.data()));
  place(reinterpret_cast<std::int64_t*>(inputs[1].bytes.data()));
}

[[nodiscard]] inline std::vector<OperatorCase> cases(const ScatterReduceElements& /*tag*/) {
  std::vector<OperatorCase> cases;
  const auto operator_of = [](const char* reduction, std::int64_t axis, bool deterministic = true) {
    return make_operator(
        operator_type<ScatterReduceElements>(),
        {{"reduction", reduction}, {"axis", axis}, {"deterministic", std::int64_t{deterministic ? 1 : 0}}});
  };
  const auto add = [&](const std::shared_ptr<const Operator>& op, DType dtype, DType index, const Extents& data,
                       const Extents& indices, const std::string& what, Fill fill = Fill::normal) -> OperatorCase& {
    const std::int64_t axis = std::get<std::int64_t>(*op->get("axis"));
    const TensorDesc x{.dtype = dtype, .extents = data};
    const TensorDesc i{.dtype = index, .extents = indices};
    return cases.emplace_back(
        OperatorCase{.name = case_name(x) + "_" + case_name(i) + "_" + std::get<std::string>(*op->get("reduction")) +
                             (axis < 0 ? "_from_last" : "") + std::to_string(axis < 0 ? -axis : axis) + what,
                     .op = op,
                     .inputs = {x, i, {.dtype = dtype, .extents = indices}},
                     .fill = fill,
                     .arrange = place_elements});
  };
  for (const DType dtype : scatter_types) {
    for (const char* reduction : scatter_reductions) {
      for (const DType index : {DType::i64, DType::i32}) {
        add(operator_of(reduction, 0), dtype, index, {6, 7, 5}, {6, 7, 5}, "");
        add(operator_of(reduction, 1), dtype, index, {6, 7, 5}, {4, 30, 5}, "");
        add(operator_of(reduction, -1), dtype, index, {6, 7, 5}, {6, 1, 100}, "");
      }
      add(operator_of(reduction, 0), dtype, DType::i64, {50}, {300}, "");
      add(operator_of(reduction, 0), dtype, DType::i64, {1}, {1000}, "_one_place");
      add(operator_of(reduction, 0), dtype, DType::i64, {20, 3}, {0, 3}, "_no_updates");
      add(operator_of(reduction, 0), dtype, DType::i64, {0, 3}, {5, 3}, "_no_places");
    }
    add(operator_of("add", 0), dtype, DType::i64, {300, 64}, {3000, 64}, "");
    add(operator_of("add", 3), dtype, DType::i32, {2, 1, 3, 2, 1, 2, 3, 2}, {2, 1, 2, 9, 1, 2, 1, 2}, "");
    add(operator_of("max", 0), dtype, DType::i64, {37, 5}, {100, 5}, "_shifted").shift = 1;
  }
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const char* reduction : scatter_reductions) {
      add(operator_of(reduction, 1), dtype, DType::i64, {24, 30}, {24, 100}, "_special", Fill::special);
      add(operator_of(reduction, 1), dtype, DType::i64, {24, 30}, {24, 100}, "_tiny", Fill::tiny);
      add(operator_of(reduction, 1), dtype, DType::i64, {24, 30}, {24, 100}, "_zeros", Fill::sparse);
      add(operator_of(reduction, 0), dtype, DType::i32, {300, 70}, {3000, 70}, "_special", Fill::special);
      add(operator_of(reduction, 0), dtype, DType::i32, {300, 70}, {3000, 70}, "_zeros", Fill::sparse);
    }
    OperatorCase& test = add(operator_of("add", 0, false), dtype, DType::i64, {300, 64}, {900, 64}, "_any_order");
    test.any_order = true;
    test.absolute = error_in_any_order(dtype);
  }
  const auto refuse = [&](const Extents& data, const Extents& indices, std::int64_t axis, const std::string& message) {
    add(operator_of("add", axis), DType::f32, DType::i64, {4, 5, 6}, {4, 5, 6}, "_refused").inputs = {
        {.extents = data}, {.dtype = DType::i64, .extents = indices}, {.extents = indices}};
    cases.back().refused = message;
    cases.back().name += std::to_string(cases.size());
  };
  refuse({4, 5}, {3}, 0, "with the rank of data");
  refuse({4, 5}, {3, 6}, 0, "must not be larger than data except along the axis");
  refuse({4, 5}, {3, 5}, 2, "axis is 2; it must be between -2 and 1");
  refuse({}, {}, 0, "`data` is a scalar");
  add(operator_of("add", 0), DType::f32, DType::i64, {4, 5}, {3, 5}, "_updates").inputs[2].extents = {4, 5};
  cases.back().refused = "indices and updates must have the same shape";
  add(operator_of("add", 0), DType::i8, DType::i64, {4, 5}, {3, 5}, "").refused = "does not take";
  return cases;
}

/// Returns the problems of exported torch.scatter_add, and of a pooling over the nodes of a graph network.
[[nodiscard]] inline std::vector<TimedCase> timings(const ScatterReduceElements& /*tag*/) {
  std::vector<TimedCase> timings;
  const auto add = [&](DType dtype, const char* reduction, std::int64_t deterministic, std::int64_t edges,
                       std::int64_t nodes, std::int64_t channels) {
    timings.push_back({.attributes = {{"reduction", reduction}, {"deterministic", deterministic}},
                       .inputs = {{.dtype = dtype, .extents = {nodes, channels}},
                                  {.dtype = DType::i64, .extents = {edges, channels}},
                                  {.dtype = dtype, .extents = {edges, channels}}}});
  };
  for (const std::int64_t deterministic : {1, 0}) {
    add(DType::f32, "add", deterministic, 100'000, 10'000, 64);
    add(DType::f32, "add", deterministic, 1'000'000, 100'000, 1);
    add(DType::f16, "add", deterministic, 100'000, 10'000, 64);
  }
  add(DType::f32, "max", 1, 100'000, 10'000, 64);
  add(DType::i32, "add", 1, 100'000, 10'000, 64);
  return timings;
}

}  // namespace graft::ops
