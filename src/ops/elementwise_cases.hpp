// The cases that every elementwise operator has.
#pragma once

#include <algorithm>

#include "ops/operator_case.hpp"

namespace graft::ops {

/// Returns cases of every combination of types that the operator supports, and of every size, rank and fill, for each
/// set of attributes. `roundings` is the number of f32 roundings that `apply` performs in sequence.
template <class Definition>
[[nodiscard]] std::vector<OperatorCase> elementwise_cases(const std::vector<Attributes>& attribute_sets,
                                                          double roundings) {
  const OperatorType& type = operator_type<Definition>();
  // With i8, multiplying by x_scale and dividing by y_scale round as well.
  const double tolerance = f32_error(roundings + 4);
  std::vector<OperatorCase> cases;
  for (std::size_t set = 0; set < attribute_sets.size(); ++set) {
    Attributes attributes = attribute_sets[set];
    attributes.insert(attributes.end(), {{"x_scale", 0.05F}, {"y_scale", 0.03F}});
    const auto op = make_operator(type, attributes);
    const std::string suffix = "_set" + std::to_string(set);
    const auto add = [&](const TensorDesc& desc, const std::string& what, Fill fill = Fill::normal) -> OperatorCase& {
      return cases.emplace_back(OperatorCase{
          .name = case_name(desc) + what + suffix, .op = op, .inputs = {desc}, .fill = fill, .tolerance = tolerance});
    };
    const Extents usual{3, 40, 5, 7};
    for (const TypeRow& row : type.type_rows) {
      const auto [dtype, layout] = row.formats[0];
      if (layout == Layout::linear) {
        for (const std::int64_t count : {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 257, 4096, 4099, 1000003}) {
          add({dtype, layout, {count}}, "");
        }
        add({dtype, layout, {}}, "");
        add({dtype, layout, {2, 0, 3}}, "");
        add({dtype, layout, {1, 2, 3, 1, 5, 1, 2, 7}}, "");
        for (const std::int64_t shift : {1, 3})
          add({dtype, layout, {257}}, "_shift" + std::to_string(shift)).shift = shift;
      } else {
        for (const std::int64_t channels : {0, 1, 8, 31, 32, 33}) add({dtype, layout, {2, channels, 3, 5}}, "");
      }
      add({dtype, layout, usual}, "_zeros", Fill::zeros);
      add({dtype, layout, usual}, "_huge", Fill::huge);
      add({dtype, layout, usual}, "_tiny", Fill::tiny);
      add({dtype, layout, usual}, "_special", Fill::special);
    }
    if (set > 0) continue;
    // A definition may declare type rows of its own, so a type or layout is expected to be refused only if no row has
    // it.
    const auto takes = [&](DType dtype, Layout layout) {
      return std::any_of(type.type_rows.begin(), type.type_rows.end(), [&](const TypeRow& row) {
        return row.formats[0].dtype == dtype && row.formats[0].layout == layout;
      });
    };
    for (const DType dtype : {DType::f16, DType::i8}) {
      if (takes(dtype, Layout::linear)) add({dtype, Layout::linear, {65537, 32771}}, "").large = true;
    }
    if (!takes(DType::i32, Layout::linear)) {
      add({DType::i32, Layout::linear, {8}}, "").refused = "does not take i32 8";
    }
    add({DType::f16, Layout::hwc8, {2, 8, 3}}, "").refused = "does not take f16 hwc8 2x8x3";
    if (!takes(DType::f32, Layout::chw32)) {
      add({DType::f32, Layout::chw32, usual}, "").refused = "does not take f32 chw32";
    }
  }
  return cases;
}

}  // namespace graft::ops
