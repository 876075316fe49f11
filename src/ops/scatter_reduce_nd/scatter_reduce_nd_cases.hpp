// Cases of ScatterReduceND: slices of one element, of whole accesses and of odd lengths, and rows that few and many
// updates select.
#pragma once

#include "ops/scatter_cases.hpp"
#include "ops/scatter_reduce_nd/scatter_reduce_nd.hpp"

namespace graft::ops {

inline void place_slices(std::span<HostTensor> inputs) {
  const Extents& data = inputs[0].desc.extents;
  const Extents& extents = inputs[1].desc.extents;
  const std::int64_t depth = extents[extents.rank() - 1];
  const auto place = [&](auto* indices) {
    for (std::int64_t i = 0; i < extents.element_count(); ++i) {
      indices[i] = as_index(indices[i], data[static_cast<int>(i % depth)]);
    }
  };
  if (inputs[1].desc.dtype == DType::i32) return place(reinterpret_cast<std::int32_t*>(inputs[1].bytes.data()));
  place(reinterpret_cast<std::int64_t*>(inputs[1].bytes.data()));
}

[[nodiscard]] inline std::vector<OperatorCase> cases(const ScatterReduceND& /*tag*/) {
  std::vector<OperatorCase> cases;
  std::vector<std::shared_ptr<const Operator>> in_order;
  for (const char* reduction : scatter_reductions) {
    in_order.push_back(make_operator(operator_type<ScatterReduceND>(), {{"reduction", reduction}}));
  }
  const auto any_order =
      make_operator(operator_type<ScatterReduceND>(), {{"reduction", "add"}, {"deterministic", std::int64_t{0}}});
  const auto add = [&](const std::shared_ptr<const Operator>& op, DType dtype, const Extents& data,
                       const Extents& indices, const std::string& what, Fill fill = Fill::normal) -> OperatorCase& {
    Extents updates;
    for (int i = 0; i + 1 < indices.rank(); ++i) updates.push_back(indices[i]);
    for (auto i = static_cast<int>(indices[indices.rank() - 1]); i < data.rank(); ++i) updates.push_back(data[i]);
    const TensorDesc x{.dtype = dtype, .extents = data};
    return cases.emplace_back(OperatorCase{
        .name = case_name(x) + "_" + to_string(indices) + "_" + std::get<std::string>(*op->get("reduction")) + what,
        .op = op,
        .inputs = {x, {.dtype = DType::i64, .extents = indices}, {.dtype = dtype, .extents = updates}},
        .fill = fill,
        .arrange = place_slices});
  };
  for (const DType dtype : scatter_types) {
    for (const auto& op : in_order) {
      add(op, dtype, {6, 7, 5}, {2, 40, 3}, "");
      add(op, dtype, {50}, {300, 1}, "");
      add(op, dtype, {33, 3}, {100, 1}, "");
      add(op, dtype, {30, 64}, {200, 1}, "");
      add(op, dtype, {7, 6, 40}, {3, 30, 2}, "");
      add(op, dtype, {1, 8}, {1000, 1}, "_one_row");
      add(op, dtype, {5000, 8}, {100, 1}, "_few");
      add(op, dtype, {20, 0}, {5, 1}, "_no_elements");
      add(op, dtype, {20, 8}, {0, 1}, "_no_updates");
      add(op, dtype, {0, 8}, {7, 1}, "_no_rows");
    }
    add(in_order[0], dtype, {300, 128}, {5000, 1}, "");
    add(in_order[0], dtype, {2, 1, 3, 2, 1, 2, 3, 2}, {9, 5}, "");
    add(in_order[0], dtype, {70'000}, {300'000, 1}, "");
    add(in_order[3], dtype, {37, 5}, {100, 1}, "_shifted").shift = 1;
    add(in_order[0], dtype, {37, 16}, {100, 1}, "_shifted").shift = 1;
  }
  for (const DType dtype : scatter_types) {
    add(in_order[0], dtype, {6, 7, 5}, {2, 40, 3}, "_i32").inputs[1].dtype = DType::i32;
    add(in_order[3], dtype, {30, 64}, {200, 1}, "_i32").inputs[1].dtype = DType::i32;
  }
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const auto& op : in_order) {
      add(op, dtype, {30, 24}, {100, 1}, "_special", Fill::special);
      add(op, dtype, {30, 24}, {100, 1}, "_tiny", Fill::tiny);
      add(op, dtype, {30, 24}, {100, 1}, "_zeros", Fill::sparse);
      add(op, dtype, {3000, 3}, {50'000, 1}, "_special", Fill::special);
      add(op, dtype, {3000, 3}, {50'000, 1}, "_zeros", Fill::sparse);
    }
    for (const Extents& data : {Extents{50}, Extents{33, 3}, Extents{30, 64}, Extents{300, 128}}) {
      OperatorCase& test = add(any_order, dtype, data, {4 * data[0], 1}, "_any_order");
      test.any_order = true;
      test.absolute = error_in_any_order(dtype);
    }
    add(any_order, dtype, {20, 8}, {0, 1}, "_any_order_no_updates");
  }
  add(in_order[0], DType::f32, {4, 5}, {3, 1}, "_length").inputs[2].extents = {3, 6};
  cases.back().refused = "updates has shape 3x6";
  add(in_order[0], DType::f32, {4, 5}, {3, 1}, "_depth").inputs[1].extents = {3, 3};
  cases.back().refused = "the last dimension of indices is 3; it must be between 1 and 2";
  add(in_order[0], DType::f32, {4, 5}, {3, 1}, "_no_depth").inputs[1].extents = {3, 0};
  cases.back().refused = "the last dimension of indices is 0; it must be between 1 and 2";
  add(in_order[0], DType::f32, {4}, {3, 1}, "_scalar").inputs[0].extents = {};
  cases.back().refused = "is a scalar";
  add(in_order[0], DType::i8, {4, 5}, {3, 1}, "").refused = "does not take";
  return cases;
}

/// Returns the problems of a graph network that sums the messages at its nodes.
[[nodiscard]] inline std::vector<TimedCase> timings(const ScatterReduceND& /*tag*/) {
  std::vector<TimedCase> timings;
  const auto add = [&](DType dtype, const char* reduction, std::int64_t deterministic, std::int64_t edges,
                       std::int64_t nodes, std::int64_t channels) {
    timings.push_back({.attributes = {{"reduction", reduction}, {"deterministic", deterministic}},
                       .inputs = {{.dtype = dtype, .extents = {nodes, channels}},
                                  {.dtype = DType::i64, .extents = {edges, 1}},
                                  {.dtype = dtype, .extents = {edges, channels}}},
                       .of_eager = 1.5});
  };
  for (const std::int64_t deterministic : {1, 0}) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      add(dtype, "add", deterministic, 100'000, 10'000, 64);
      add(dtype, "add", deterministic, 1'000'000, 10'000, 64);
      add(dtype, "add", deterministic, 1'000'000, 100'000, 128);
      add(dtype, "add", deterministic, 500'000, 50'000, 256);
    }
  }
  add(DType::f32, "max", 1, 1'000'000, 100'000, 64);
  add(DType::i64, "add", 1, 1'000'000, 100'000, 64);
  return timings;
}

}  // namespace graft::ops
