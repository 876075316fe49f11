// Cases of RegionAlign in every mode: regions smaller and larger than their bins, outside the map, or with swapped
// corners, and regions of items that x does not have.
#pragma once

#include <Eigen/Core>
#include <cmath>

#include "ops/operator_case.hpp"
#include "ops/region_align/region_align.hpp"

namespace graft::ops {

/// Maps normally distributed values to regions of a map, most of which lie on it, and integers to items of the batch.
/// Unless `proper`, some regions have swapped corners, and one item in eight does not exist.
inline void place_regions(std::span<HostTensor> inputs, bool proper) {
  const Extents& x = inputs[0].desc.extents;
  const auto place = [&]<class Element>(Element* rois) {
    for (std::int64_t i = 0; i < inputs[1].desc.extents[0]; ++i) {
      for (std::int64_t axis = 0; axis < 2; ++axis) {
        const auto size = static_cast<float>(x[axis == 0 ? 3 : 2]);
        Element& low = rois[i * 4 + axis];
        Element& high = rois[i * 4 + 2 + axis];
        const float middle = size * (0.5F + 0.4F * static_cast<float>(low));
        const float half = size * 0.2F * static_cast<float>(high);
        low = static_cast<Element>(middle - (proper ? std::abs(half) : half));
        high = static_cast<Element>(middle + (proper ? std::abs(half) : half));
      }
    }
  };
  std::byte* rois = inputs[1].bytes.data();
  if (inputs[1].desc.dtype == DType::f32) place(reinterpret_cast<float*>(rois));
  if (inputs[1].desc.dtype == DType::f16) place(reinterpret_cast<Eigen::half*>(rois));
  if (inputs[1].desc.dtype == DType::bf16) place(reinterpret_cast<Eigen::bfloat16*>(rois));
  auto* items = reinterpret_cast<std::int64_t*>(inputs[2].bytes.data());
  constexpr std::int64_t some = 8;
  for (std::int64_t i = 0; i < inputs[2].desc.extents.element_count(); ++i) {
    if (x[0] > 0 && (proper || items[i] % some != 0)) items[i] = (items[i] % x[0] + x[0]) % x[0];
  }
}

inline void place_proper_regions(std::span<HostTensor> inputs) { place_regions(inputs, true); }
inline void place_any_regions(std::span<HostTensor> inputs) { place_regions(inputs, false); }

[[nodiscard]] inline std::vector<OperatorCase> cases(const RegionAlign& /*tag*/) {
  std::vector<OperatorCase> cases;
  const auto add = [&](DType dtype, const Extents& x, std::int64_t regions, const Attributes& attributes,
                       const std::string& what, Fill fill = Fill::normal) -> OperatorCase& {
    const TensorDesc map{.dtype = dtype, .extents = x};
    // A sum of products, the largest of which is about 5, with one rounding each.
    constexpr double absolute = 5 * f32_error(64);
    return cases.emplace_back(OperatorCase{
        .name = case_name(map) + "_" + std::to_string(regions) + what,
        .op = make_operator(operator_type<RegionAlign>(), attributes),
        .inputs = {map, {.dtype = dtype, .extents = {regions, 4}}, {.dtype = DType::i64, .extents = {regions}}},
        .fill = fill,
        .tolerance = f32_error(8),
        .absolute = absolute,
        .arrange = place_proper_regions});
  };
  const auto sizes = [](std::int64_t height, std::int64_t width, std::int64_t ratio) -> Attributes {
    return {{"output_height", height}, {"output_width", width}, {"sampling_ratio", ratio}};
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t ratio : {0, 1, 2, 3}) {
      for (const char* mode : {"avg", "max"}) {
        for (const char* coordinates : {"half_pixel", "output_half_pixel"}) {
          Attributes attributes = sizes(7, 7, ratio);
          attributes.emplace_back("mode", mode);
          attributes.emplace_back("coordinate_transformation_mode", coordinates);
          const std::string what = "_" + std::to_string(ratio) + "_" + mode + "_" + coordinates;
          add(dtype, {2, 5, 25, 38}, 9, attributes, what);
          add(dtype, {2, 5, 25, 38}, 9, attributes, what + "_special", Fill::special).arrange = place_any_regions;
        }
      }
      add(dtype, {3, 4, 13, 17}, 20, sizes(1, 1, ratio), "_one_bin_" + std::to_string(ratio));
      add(dtype, {1, 3, 50, 20}, 8, sizes(14, 3, ratio), "_unequal_" + std::to_string(ratio));
      add(dtype, {1, 1, 1, 1}, 8, sizes(2, 2, ratio), "_one_pixel_" + std::to_string(ratio));
    }
    for (const std::int64_t channels : {1, 2, 3, 4, 7, 8, 257})
      add(dtype, {1, channels, 30, 40}, 5, sizes(7, 7, 2), "");
    add(dtype, {2, 64, 50, 76}, 100, sizes(7, 7, 0), "");
    add(dtype, {1, 300, 20, 20}, 3, sizes(28, 28, 2), "");
    add(dtype, {1, 2, 300, 2000}, 4, sizes(7, 7, 0), "_more_taps_than_a_block_has");
    Attributes many = sizes(3, 2, 200);
    add(dtype, {2, 6, 40, 40}, 4, many, "_more_samples_than_a_block_has");
    many.emplace_back("mode", "max");
    add(dtype, {2, 6, 40, 40}, 4, many, "_more_samples_than_a_block_has_max");
    Attributes large = sizes(4, 4, 0);
    large.emplace_back("spatial_scale", 50.F);
    add(dtype, {1, 3, 20, 30}, 6, large, "_larger_than_the_map");
    large.emplace_back("mode", "max");
    add(dtype, {1, 3, 20, 30}, 6, large, "_larger_than_the_map_max");
    Attributes small = sizes(7, 7, 0);
    small.emplace_back("spatial_scale", 0.0625F);
    add(dtype, {2, 3, 20, 30}, 6, small, "_scaled_down");
    add(dtype, {2, 3, 20, 30}, 0, sizes(7, 7, 2), "_no_regions");
    add(dtype, {0, 3, 20, 30}, 4, sizes(7, 7, 2), "_no_items");
    add(dtype, {2, 0, 20, 30}, 4, sizes(7, 7, 2), "_no_channels");
    add(dtype, {2, 3, 0, 30}, 4, sizes(7, 7, 0), "_no_rows");
    add(dtype, {2, 3, 20, 0}, 4, sizes(7, 7, 2), "_no_columns");
    add(dtype, {2, 3, 20, 30}, 4, sizes(7, 7, 2), "_zeros", Fill::zeros);
    add(dtype, {2, 3, 20, 30}, 40, sizes(3, 5, 2), "_any_region", Fill::offset).arrange = place_any_regions;
    add(dtype, {2, 3, 20, 30}, 4, sizes(7, 7, 2), "_any_item", Fill::offset).arrange = nullptr;
    add(dtype, {2, 5, 21, 33}, 9, sizes(7, 7, 2), "_shifted").shift = 1;
  }
  const Attributes one = sizes(1, 1, 1);
  add(DType::f32, {1, 1, 4, 4}, 2, one, "_corners").inputs[1].extents = {2, 5};
  cases.back().refused = "the shapes must be R,4 and R";
  add(DType::f32, {1, 1, 4, 4}, 2, one, "_count").inputs[2].extents = {3};
  cases.back().refused = "the shapes must be R,4 and R";
  add(DType::f32, {1, 4, 4}, 2, one, "_rank").refused = "`x` has rank 3";
  add(DType::f32, {1, 0, 1 << 16, 1 << 15}, 2, one, "_size").refused = "its maps may have at most 2147483647 pixels";
  add(DType::f32, {1, 1, 4, 4}, 2, one, "_type").inputs[1].dtype = DType::f16;
  cases.back().refused = "does not take";
  return cases;
}

/// Returns the heads of detectors: boxes and masks of 1,000 and 100 proposals, on a fine and on a coarse map.
[[nodiscard]] inline std::vector<TimedCase> timings(const RegionAlign& /*tag*/) {
  std::vector<TimedCase> timings;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const auto add = [&](const Extents& x, std::int64_t regions, std::int64_t bins, std::int64_t ratio, float scale) {
      timings.push_back({.attributes = {{"output_height", bins},
                                        {"output_width", bins},
                                        {"sampling_ratio", ratio},
                                        {"spatial_scale", scale}},
                         .inputs = {{.dtype = dtype, .extents = x},
                                    {.dtype = dtype, .extents = {regions, 4}},
                                    {.dtype = DType::i64, .extents = {regions}}}});
    };
    for (const std::int64_t ratio : {2, 0}) {
      add({1, 256, 200, 304}, 1000, 7, ratio, 0.25F);
      add({1, 256, 200, 304}, 100, 14, ratio, 0.25F);
      add({1, 256, 200, 304}, 1000, 14, ratio, 0.25F);
      add({2, 256, 50, 76}, 1000, 7, ratio, 0.0625F);
    }
  }
  return timings;
}

}  // namespace graft::ops
