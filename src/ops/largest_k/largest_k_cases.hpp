// Cases of LargestK: few and many rows, every axis, k = 0, k = 1, k = the length of the axis, and many equal elements.
#pragma once

#include "ops/largest_k/largest_k.hpp"
#include "ops/operator_case.hpp"

namespace graft::ops {

[[nodiscard]] inline std::vector<OperatorCase> cases(const LargestK& /*tag*/) {
  std::vector<OperatorCase> cases;
  const auto add = [&](DType dtype, const Extents& extents, std::int64_t k, const Attributes& more,
                       const std::string& what, Fill fill = Fill::normal) -> OperatorCase& {
    const TensorDesc x{.dtype = dtype, .extents = extents};
    Attributes attributes{{"k", k}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    return cases.emplace_back(OperatorCase{.name = case_name(x) + "_" + std::to_string(k) + what,
                                           .op = make_operator(operator_type<LargestK>(), attributes),
                                           .inputs = {x},
                                           .fill = fill});
  };
  const Attributes smallest{{"largest", std::int64_t{0}}};
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64}) {
    for (const std::int64_t length : {1, 31, 257, 4097, 20'000}) {
      add(dtype, {length}, length, {}, "_all");
      add(dtype, {length}, (length + 1) / 2, smallest, "_smallest");
      add(dtype, {3, length}, 1, {}, "");
      add(dtype, {20, length}, (length + 3) / 4, {}, "");
    }
    add(dtype, {200, 257}, 65, {}, "");
    add(dtype, {13, 31, 10}, 31, {{"axis", std::int64_t{1}}}, "");
    for (const std::int64_t axis : {0, 1, 2, -2}) {
      const std::string name = "_axis_" + std::to_string(axis < 0 ? 3 - axis : axis);
      add(dtype, {5, 7, 9}, 4, {{"axis", axis}}, name);
      add(dtype, {5, 7, 9}, 5, {{"axis", axis}, {"largest", std::int64_t{0}}}, name);
    }
    add(dtype, {2, 3000}, 500, {}, "_equal", Fill::sparse);
    add(dtype, {2, 3000}, 2500, smallest, "_equal_smallest", Fill::sparse);
    add(dtype, {30, 100}, 60, {}, "_zeros", Fill::zeros);
    add(dtype, {4, 50}, 0, {}, "_none");
    add(dtype, {0, 50}, 10, {}, "_no_rows");
    add(dtype, {3, 0}, 0, {}, "_nothing");
    // Fill::tiny excludes the case from the tests that run the ONNX function: with sorted=0 ONNX Runtime returns
    // another order.
    add(dtype, {3, 500}, 100, {{"sorted", std::int64_t{0}}}, "_any_order", Fill::tiny);
    add(dtype, {3, 777}, 100, {}, "_shifted").shift = 1;
  }
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    add(dtype, {12, 400}, 400, {}, "_special", Fill::special);
    add(dtype, {1, 400}, 400, smallest, "_special_smallest", Fill::special);
    add(dtype, {12, 400}, 40, {}, "_huge", Fill::huge);
    add(dtype, {12, 400}, 40, {}, "_tiny", Fill::tiny);
  }
  // With this many elements, the kernels select the k elements of each row before they sort.
  add(DType::f32, {100, 21'000}, 300, {}, "_found");
  add(DType::f32, {7, 60'001, 5}, 77, {{"axis", std::int64_t{1}}, {"largest", std::int64_t{0}}}, "_found_axis_1");
  add(DType::f32, {2, 1'050'000}, 9000, {}, "_found_equal", Fill::sparse);
  add(DType::f16, {1, 2'100'000}, 5000, smallest, "_found_special", Fill::special);
  add(DType::i32, {1, 2'100'000}, 1, {}, "_found_one");
  add(DType::f32, {4, 10}, 11, {}, "").refused = "it must be at most the length of axis 1 of x, 10";
  add(DType::f32, {4, 10}, 1, {{"axis", std::int64_t{2}}}, "_axis").refused = "`axis` is 2";
  add(DType::f32, {}, 1, {}, "").refused = "but x has 0 dimensions";
  add(DType::i8, {4}, 1, {}, "").refused = "does not take";
  return cases;
}

/// Returns the problems of detectors before suppression, with one image and with several, and rows as long as the
/// vocabulary of a language model.
[[nodiscard]] inline std::vector<TimedCase> timings(const LargestK& /*tag*/) {
  std::vector<TimedCase> timings;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const auto add = [&](const Extents& x, std::int64_t k) {
      timings.push_back({.attributes = {{"k", k}}, .inputs = {{.dtype = dtype, .extents = x}}});
    };
    add({1, 8000}, 5000);
    add({1, 268'569}, 12'000);
    add({1, 1'000'000}, 100'000);
    add({4, 120'000}, 6000);
    add({64, 50'257}, 5000);
  }
  return timings;
}

}  // namespace graft::ops
