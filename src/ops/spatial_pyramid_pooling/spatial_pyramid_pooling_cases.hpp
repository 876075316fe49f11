// Cases of SpatialPyramidPooling.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/operator_case.hpp"
#include "ops/random_cases.hpp"
#include "ops/spatial_pyramid_pooling/spatial_pyramid_pooling.hpp"

namespace graft::ops {

[[nodiscard]] inline std::vector<OperatorCase> cases(const SpatialPyramidPooling& /*tag*/) {
  using Levels = std::vector<std::int64_t>;
  const OperatorType& type = operator_type<SpatialPyramidPooling>();
  std::vector<OperatorCase> cases;
  const auto add = [&](const TensorDesc& desc, const char* mode, const char* binning, const Levels& levels,
                       const std::string& what = "", Fill fill = Fill::normal) -> OperatorCase& {
    std::string name = case_name(desc) + "_" + mode + "_" + binning;
    for (const std::int64_t level : levels) name += "_" + std::to_string(level);
    const auto op = make_operator(type, {{"levels", levels},
                                         {"mode", std::string(mode)},
                                         {"binning", std::string(binning)},
                                         {"x_scale", 0.05F},
                                         {"y_scale", 0.04F}});
    OperatorCase& made = cases.emplace_back(
        OperatorCase{.name = name + what, .op = op, .inputs = {desc}, .fill = fill, .tolerance = f32_error(4)});
    if (std::string_view(mode) == "average" && desc.extents.rank() == 4) {
      // A thread adds at most a quarter of the height of a plane; lanes and blocks then add their sums. Terms may
      // cancel, so the error is relative to the average of |x|, not to the result.
      const auto height = static_cast<double>(desc.extents[2]);
      const auto width = static_cast<double>(desc.extents[3]);
      const double largest = desc.dtype == DType::i8 ? 128 * 0.05
                             : fill == Fill::huge    ? 65504
                             : fill == Fill::tiny    ? 1e-29
                                                     : 6;
      made.absolute = f32_error(height + width + 64) * largest;
    }
    return made;
  };

  const std::vector<Extents> sizes{
      {1, 1, 1, 1},     {2, 3, 2, 3},     {2, 3, 4, 4},     {3, 5, 7, 9},     {2, 33, 13, 13},
      {2, 256, 7, 7},   {1, 64, 56, 56},  {2, 20, 64, 64},  {5, 7, 16, 32},   {1, 3, 61, 256},
      {1, 9, 40, 24},   {0, 3, 8, 8},     {2, 0, 8, 8},     {1, 2, 1, 300},   {1, 2, 300, 1},
      {1, 1, 480, 640}, {1, 2, 251, 333}, {1, 1, 3, 20000}, {300, 3, 10, 12},
  };
  const std::vector<Levels> pyramids{{4, 2, 1}, {1}, {1, 1}, {4}, {7}, {6, 3, 2, 1}, {5, 4}, {7, 13}, {40, 3}};
  for (const TypeRow& row : type.type_rows) {
    const DType dtype = row.formats[0].dtype;
    for (const char* mode : {"max", "average"}) {
      for (const Extents& extents : sizes) {
        const std::int64_t side = std::min(extents[2], extents[3]);
        for (const Levels& levels : pyramids) {
          const std::int64_t most = *std::max_element(levels.begin(), levels.end());
          const bool usual = levels == pyramids[0];
          if (!usual && (extents.element_count() > 10000 || dtype == DType::f16 || dtype == DType::bf16)) continue;
          add({dtype, Layout::linear, extents}, mode, "adaptive", levels);
          if (side >= most && (usual || levels.size() == 1))
            add({dtype, Layout::linear, extents}, mode, "window", levels);
          const bool binnable = std::all_of(levels.begin(), levels.end(), [&](std::int64_t bins) {
            return can_bin(Binning::caffe, extents[2], bins) && can_bin(Binning::caffe, extents[3], bins);
          });
          if (binnable) add({dtype, Layout::linear, extents}, mode, "caffe", levels);
        }
      }
      // This shape has many planes of few vectors.
      add({dtype, Layout::linear, {4, 136, 32, dtype == DType::i8 ? 64 : 32}}, mode, "adaptive", {4, 2, 1});
      for (const std::int64_t shift : {1, 3}) {
        add({dtype, Layout::linear, {2, 5, 16, 32}}, mode, "adaptive", {4, 2, 1}, "_shift" + std::to_string(shift))
            .shift = shift;
      }
      add({dtype, Layout::linear, {2, 5, 16, 32}}, mode, "adaptive", {4, 2, 1}, "_zeros", Fill::zeros);
      add({dtype, Layout::linear, {2, 5, 16, 32}}, mode, "adaptive", {4, 2, 1}, "_tiny", Fill::tiny);
      add({dtype, Layout::linear, {2, 5, 16, 32}}, mode, "window", {5, 3}, "_special", Fill::special);
      add({dtype, Layout::linear, {2, 5, 17, 32}}, mode, "adaptive", {5, 2, 1}, "_special", Fill::special);
      // Whether a sum of the largest values overflows f32 depends on the order in which a kernel adds.
      const bool overflows = std::string_view(mode) == "average" && dtype != DType::f16;
      if (!overflows) add({dtype, Layout::linear, {2, 5, 16, 32}}, mode, "adaptive", {4, 2, 1}, "_huge", Fill::huge);
    }
  }
  const TensorDesc usual{DType::f32, Layout::linear, {2, 3, 5, 7}};
  add({DType::i32, Layout::linear, {2, 3, 5, 7}}, "max", "adaptive", {1}).refused = "does not take i32";
  add({DType::f32, Layout::linear, {2, 3, 5}}, "max", "adaptive", {1}).refused = "does not take f32 2x3x5";
  add({DType::f16, Layout::hwc8, {2, 8, 5, 7}}, "max", "adaptive", {1}).refused = "does not take f16 hwc8";
  add({DType::f32, Layout::linear, {2, 3, 0, 7}}, "max", "adaptive", {1}).refused =
      "an axis of 0 elements cannot have 1 bins";
  add(usual, "max", "window", {6}).refused = "an axis of 5 elements cannot have 6 bins with binning window";
  add(usual, "max", "caffe", {4}).refused = "an axis of 5 elements cannot have 4 bins with binning caffe";
  add({DType::f16, Layout::linear, {32771, 64, 32, 32}}, "max", "adaptive", {4, 2, 1}).large = true;
  add({DType::i8, Layout::linear, {3, 7, 10007, 10211}}, "average", "adaptive", {4, 2, 1}).large = true;
  return cases;
}

[[nodiscard]] inline std::vector<TimedCase> timings(const SpatialPyramidPooling& /*tag*/) {
  using Levels = std::vector<std::int64_t>;
  const auto timed = [](const char* mode, const Levels& levels, const Extents& extents, double of_copy = 0) {
    return TimedCase{.attributes = {{"mode", std::string(mode)}, {"levels", levels}},
                     .inputs = {{.extents = extents}},
                     .of_copy = of_copy};
  };
  const std::vector<TimedCase> shapes{
      timed("max", {4, 2, 1}, {16, 256, 64, 64}, 0.85),
      timed("average", {4, 2, 1}, {16, 256, 64, 64}),
      timed("max", {6, 3, 2, 1}, {16, 256, 64, 64}),
      timed("max", {4, 2, 1}, {64, 256, 128, 128}),
      timed("max", {4, 2, 1}, {64, 512, 13, 13}),
      timed("max", {4, 2, 1}, {16, 256, 61, 83}),
      timed("max", {4, 2, 1}, {2, 16, 1024, 1024}),
      timed("max", {4, 2, 1}, {1, 64, 56, 56}),
      timed("max", {4, 2, 1}, {1, 512, 13, 13}),
      timed("max", {4, 2, 1}, {1, 32, 8, 8}),  // digits of any size, tests/golden/quantize/sized_digits.onnx
      timed("max", {4, 2, 1}, {64, 32, 8, 8}),
  };
  return in_formats(linear_formats, shapes);
}

/// Generates random feature maps of any size, pooled to one to four levels of up to 8 bins a side.
[[nodiscard]] inline TimedCase draw(const SpatialPyramidPooling& /*tag*/, Draw& draw) {
  constexpr SizeRange batch{1, 64};
  constexpr SizeRange image{8, 256};
  constexpr SizeRange level_count{1, 4};
  constexpr SizeRange bins{1, 8};
  const Extents extents = draw.shape([&] {
    return Extents{draw.size(batch), draw_channels(draw, 3, 1024), draw.size(image), draw.size(image)};
  });
  std::vector<std::int64_t> levels(static_cast<std::size_t>(draw.integer(level_count)));
  for (std::int64_t& level : levels) level = draw.integer(bins);
  return {.attributes = {{"mode", draw.one_of<std::string>({"max", "average"})}, {"levels", levels}},
          .inputs = {{.dtype = draw.one_of(drawn_dtypes), .extents = extents}}};
}

}  // namespace graft::ops
