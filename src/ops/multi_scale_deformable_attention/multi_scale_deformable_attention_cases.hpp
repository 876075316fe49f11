// Cases of MultiScaleDeformableAttention: maps of several sizes, equal and unequal counts of points per map, points
// outside the maps, and maps with more pixels than value.
#pragma once

#include <Eigen/Core>
#include <cmath>

#include "ops/multi_scale_deformable_attention/multi_scale_deformable_attention.hpp"
#include "ops/operator_case.hpp"

namespace graft::ops {

/// Maps normally distributed values to sampling locations, of which about a fifth lie outside their map.
inline void place_points(HostTensor& locations) {
  const auto place = [&]<class Element>(Element* numbers) {
    for (std::int64_t i = 0; i < locations.desc.extents.element_count(); ++i) {
      numbers[i] = static_cast<Element>(0.5F + 0.4F * static_cast<float>(numbers[i]));
    }
  };
  std::byte* bytes = locations.bytes.data();
  if (locations.desc.dtype == DType::f32) place(reinterpret_cast<float*>(bytes));
  if (locations.desc.dtype == DType::f16) place(reinterpret_cast<Eigen::half*>(bytes));
  if (locations.desc.dtype == DType::bf16) place(reinterpret_cast<Eigen::bfloat16*>(bytes));
}

/// Replaces the sizes of each map with f(index, size).
template <class F>
void change_sizes(HostTensor& sizes, F&& f) {
  const auto change = [&]<class Number>(Number* numbers) {
    for (std::int64_t i = 0; i < sizes.desc.extents.element_count(); ++i) {
      numbers[i] = static_cast<Number>(f(i, std::int64_t{numbers[i]}));
    }
  };
  if (sizes.desc.dtype == DType::i32) change(reinterpret_cast<std::int32_t*>(sizes.bytes.data()));
  if (sizes.desc.dtype == DType::i64) change(reinterpret_cast<std::int64_t*>(sizes.bytes.data()));
}

/// Sets the sizes of the maps so that they are about square and each has a fourth of the pixels of the previous map.
/// Together they have slightly fewer pixels than value.
inline void place_maps(std::span<HostTensor> inputs) {
  const std::int64_t levels = inputs[1].desc.extents[0];
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(2 * levels));
  std::int64_t left = inputs[0].desc.extents[1];
  for (std::int64_t level = 0; level < levels; ++level) {
    const std::int64_t share = level + 1 < levels ? left * 3 / 4 : left;
    const auto width = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(share))));
    const std::int64_t height = width == 0 ? 0 : share / width;
    sizes[static_cast<std::size_t>(2 * level)] = height;
    sizes[static_cast<std::size_t>(2 * level + 1)] = width;
    left -= height * width;
  }
  change_sizes(inputs[1], [&](std::int64_t i, std::int64_t) { return sizes[static_cast<std::size_t>(i)]; });
  place_points(inputs[2]);
}

/// Sets the sizes of the maps to -2 to 9 rows and columns, whatever the number of pixels of value.
inline void place_any_maps(std::span<HostTensor> inputs) {
  constexpr std::int64_t some = 12;
  change_sizes(inputs[1], [](std::int64_t, std::int64_t number) { return (number % some + some) % some - 2; });
  place_points(inputs[2]);
}

[[nodiscard]] inline std::vector<OperatorCase> cases(const MultiScaleDeformableAttention& /*tag*/) {
  std::vector<OperatorCase> cases;
  const auto add = [&](DType dtype, const Extents& value, std::int64_t queries, const std::vector<std::int64_t>& points,
                       const std::string& what = "", Fill fill = Fill::normal) -> OperatorCase& {
    std::int64_t count = 0;
    std::string name = case_name({.dtype = dtype, .extents = value}) + "_" + std::to_string(queries);
    for (const std::int64_t each : points) {
      count += each;
      name += "_" + std::to_string(each);
    }
    // The result is a sum of a few dozen terms, each a product of a normally distributed number and a weight that is
    // rounded once or twice.
    constexpr double largest_term = 25;
    return cases.emplace_back(
        OperatorCase{.name = name + what,
                     .op = make_operator(operator_type<MultiScaleDeformableAttention>(), {{"points", points}}),
                     .inputs = {{.dtype = dtype, .extents = value},
                                {.dtype = DType::i64, .extents = {std::ssize(points), 2}},
                                {.dtype = dtype, .extents = {value[0], queries, value[2], count, 2}},
                                {.dtype = dtype, .extents = {value[0], queries, value[2], count}}},
                     .fill = fill,
                     .tolerance = f32_error(8),
                     .absolute = largest_term * f32_error(64),
                     .arrange = place_maps});
  };
  const auto split = [](OperatorCase& test, std::int64_t levels, std::int64_t points) {
    const Extents& value = test.inputs[0].extents;
    const std::int64_t queries = test.inputs[2].extents[1];
    test.inputs[2].extents = {value[0], queries, value[2], levels, points, 2};
    test.inputs[3].extents = {value[0], queries, value[2], levels, points};
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const Fill fill : {Fill::normal, Fill::zeros, Fill::special, Fill::offset, Fill::sparse}) {
      const std::string what = "_fill" + std::to_string(static_cast<int>(fill));
      OperatorCase& test = add(dtype, {2, 340, 8, 32}, 9, {4, 4, 4, 4}, what, fill);
      if (fill == Fill::offset) test.absolute *= dtype == DType::f16 ? 1e3 : 1e4;
    }
    for (const std::int64_t channels : {1, 2, 3, 4, 5, 8, 12, 16, 20, 31, 33, 64, 128, 129, 260, 520}) {
      add(dtype, {1, 84, 3, channels}, 5, {4, 4, 4});
    }
    add(dtype, {2, 100, 2, 32}, 7, {3, 6, 3}, "_unequal");
    add(dtype, {1, 100, 1, 8}, 3, {1}, "_one_point");
    add(dtype, {1, 50, 2, 4}, 4, {7, 1, 2, 9}, "_odd");
    add(dtype, {1, 64, 2, 16}, 3, {100, 200}, "_more_points_than_a_warp_prepares");
    add(dtype, {1, 200, 2, 8}, 3, {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}, "_most_levels");
    add(dtype, {3, 1, 2, 8}, 5, {4, 2}, "_one_pixel");
    add(dtype, {2, 2100, 8, 32}, 100, {4, 4, 4}, "_decoder");
    split(add(dtype, {2, 84, 4, 16}, 11, {4, 4, 4}, "_levels_apart"), 3, 4);
    OperatorCase& told = add(dtype, {2, 84, 4, 16}, 11, {4, 4, 4}, "_points_by_shape");
    told.op = make_operator(operator_type<MultiScaleDeformableAttention>(), {});
    split(told, 3, 4);
    add(dtype, {2, 84, 4, 16}, 11, {4, 4, 4}, "_narrow_sizes").inputs[1].dtype = DType::i32;
    add(dtype, {2, 84, 4, 16}, 11, {4, 4, 4}, "_any_narrow_maps").inputs[1].dtype = DType::i32;
    cases.back().arrange = place_any_maps;
    add(dtype, {2, 84, 4, 16}, 11, {4, 4, 4}, "_any_maps").arrange = place_any_maps;
    add(dtype, {2, 84, 4, 16}, 11, {4, 4, 4}, "_any_maps_special", Fill::special).arrange = place_any_maps;
    add(dtype, {2, 84, 4, 16}, 11, {4, 4, 4}, "_shifted").shift = 1;
    add(dtype, {0, 84, 4, 16}, 11, {4, 4, 4}, "_no_items");
    add(dtype, {2, 0, 4, 16}, 11, {4, 4, 4}, "_no_pixels");
    add(dtype, {2, 84, 0, 16}, 11, {4, 4, 4}, "_no_heads");
    add(dtype, {2, 84, 4, 0}, 11, {4, 4, 4}, "_no_channels");
    add(dtype, {2, 84, 4, 16}, 0, {4, 4, 4}, "_no_queries");
  }
  const auto refuse = [&](const std::string& what, std::size_t port, const Extents& extents, const std::string& words) {
    OperatorCase& test = add(DType::f32, {2, 84, 4, 16}, 11, {4, 4, 4}, what);
    test.inputs[port].extents = extents;
    test.refused = words;
  };
  refuse("_levels", 1, {2, 2}, "spatial_shapes has shape 2x2; it must have shape 3x2");
  refuse("_sizes", 1, {3, 3}, "spatial_shapes has shape 3x3; it must have shape 3x2");
  refuse("_points", 2, {2, 11, 4, 11, 2}, "it must have shape 2xQx4x12x2");
  refuse("_coordinates", 2, {2, 11, 4, 12, 3}, "it must have shape 2xQx4x12x2");
  refuse("_heads", 2, {2, 11, 3, 12, 2}, "it must have shape 2xQx4x12x2");
  refuse("_weights", 3, {2, 11, 4, 11}, "attention_weights has shape 2x11x4x11");
  refuse("_queries", 3, {2, 10, 4, 12}, "attention_weights has shape 2x10x4x12");
  refuse("_rank", 0, {2, 84, 64}, "`value` has rank 3; the rank must be 4");
  refuse("_rank_of_points", 2, {2, 11, 4, 24}, "`sampling_locations` has rank 4; the rank must be at least 5");
  const auto refuse_split = [&](const std::string& what, const Extents& locations, const std::string& words) {
    refuse(what, 2, locations, words);
    cases.back().op = make_operator(operator_type<MultiScaleDeformableAttention>(), {});
  };
  refuse_split("_points_of_no_shape", {2, 11, 4, 12, 2},
               "it must have shape BxQxMxLxPx2 if the attribute points is empty");
  refuse_split("_no_points_at_all", {2, 11, 4, 3, 0, 2},
               "it must have shape BxQxMxLxPx2 if the attribute points is empty");
  refuse_split("_too_many_levels", {2, 11, 4, 17, 4, 2}, "with L between 1 and 16");
  refuse_split("_other_levels", {2, 11, 4, 4, 3, 2}, "spatial_shapes has shape 3x2; it must have shape 4x2");
  add(DType::f32, {1, std::int64_t{1} << 31, 1, 1}, 0, {4}, "_pixels").refused = "at most 2147483647 pixels";
  add(DType::f32, {1, 4, 4, 16}, 1, {4}, "_type").inputs[3].dtype = DType::f16;
  cases.back().refused = "does not take";
  return cases;
}

/// Returns the problems of decoders and encoders of detectors: images of 640 x 640 in three maps, and of 800 x 1333 in
/// four.
[[nodiscard]] inline std::vector<TimedCase> timings(const MultiScaleDeformableAttention& /*tag*/) {
  std::vector<TimedCase> timings;
  constexpr std::int64_t heads = 8;
  constexpr std::int64_t channels = 32;
  constexpr std::int64_t points = 4;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const auto add = [&](std::int64_t items, std::int64_t pixels, std::int64_t queries, std::int64_t levels) {
      const std::vector<std::int64_t> of_levels(static_cast<std::size_t>(levels), points);
      timings.push_back({.attributes = {{"points", of_levels}},
                         .inputs = {{.dtype = dtype, .extents = {items, pixels, heads, channels}},
                                    {.dtype = DType::i64, .extents = {levels, 2}},
                                    {.dtype = dtype, .extents = {items, queries, heads, levels, points, 2}},
                                    {.dtype = dtype, .extents = {items, queries, heads, levels, points}}}});
    };
    constexpr std::int64_t square = 80 * 80 + 40 * 40 + 20 * 20;
    constexpr std::int64_t wide = 100 * 167 + 50 * 84 + 25 * 42 + 13 * 21;
    constexpr std::int64_t decoder = 300;
    add(1, square, decoder, 3);
    add(8, square, decoder, 3);
    add(1, wide, decoder, 4);
    add(1, square, square, 3);
    add(1, wide, wide, 4);
    add(4, wide, wide, 4);
  }
  return timings;
}

}  // namespace graft::ops
