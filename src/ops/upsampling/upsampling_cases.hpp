// Cases of Upsampling.
#pragma once

#include <cmath>

#include "ops/operator_case.hpp"
#include "ops/random_cases.hpp"
#include "ops/upsampling/upsampling.hpp"

namespace graft::ops {

[[nodiscard]] inline std::vector<OperatorCase> cases(const Upsampling& /*tag*/) {
  using Scales = std::vector<float>;
  using Sizes = std::vector<std::int64_t>;
  const OperatorType& type = operator_type<Upsampling>();
  struct Mode {
    const char* name;
    Attributes attributes;
  };
  const auto mode = [](const char* name, const char* interpolation, const char* coordinates,
                       const char* rounding = "round_prefer_floor") {
    return Mode{name,
                {{"mode", std::string(interpolation)},
                 {"coordinate_mode", std::string(coordinates)},
                 {"nearest_mode", std::string(rounding)}}};
  };
  const Mode nearest = mode("nearest", "nearest", "asymmetric", "floor");
  const Mode nearest_exact = mode("nearest_exact", "nearest", "half_pixel", "round_prefer_ceil");
  const Mode nearest_onnx = mode("nearest_onnx", "nearest", "half_pixel");
  const Mode nearest_ceil = mode("nearest_ceil", "nearest", "asymmetric", "ceil");
  const Mode nearest_corners = mode("nearest_corners", "nearest", "align_corners");
  const Mode linear = mode("linear", "linear", "half_pixel");
  const Mode linear_corners = mode("linear_corners", "linear", "align_corners");
  const Mode linear_asymmetric = mode("linear_asymmetric", "linear", "asymmetric");
  const Mode cubic = mode("cubic", "cubic", "half_pixel");
  const Mode cubic_corners = mode("cubic_corners", "cubic", "align_corners");
  const Mode cubic_asymmetric = mode("cubic_asymmetric", "cubic", "asymmetric");
  const std::vector<Mode> modes{nearest,        nearest_exact,     nearest_onnx, nearest_ceil,  nearest_corners, linear,
                                linear_corners, linear_asymmetric, cubic,        cubic_corners, cubic_asymmetric};

  const auto largest_of = [](DType dtype, Fill fill) -> double {
    if (fill == Fill::zeros || fill == Fill::tiny) return 0;
    if (fill == Fill::huge) return dtype == DType::f16 ? 65504 : 3e38;
    return dtype == DType::i8 ? 128 * 0.05 : 6;
  };

  std::vector<OperatorCase> cases;
  const auto add = [&](const TensorDesc& desc, const Mode& how, const std::string& what, Attributes size,
                       Fill fill = Fill::normal) -> OperatorCase& {
    size.insert(size.end(), how.attributes.begin(), how.attributes.end());
    // f8e4m3fn is only moved, with equal scales.
    size.insert(size.end(), {{"x_scale", 0.05F}, {"y_scale", desc.dtype == DType::f8e4m3fn ? 0.05F : 0.0625F}});
    // A result is a sum whose terms may cancel, so its error is relative to the largest input (times the sum of the
    // cubic weights): along each axis three roundings of a weight and one of a sum.
    const bool is_cubic = how.attributes[0].second == AttributeValue(std::string("cubic"));
    const double gain = is_cubic ? 4 : 1;
    return cases.emplace_back(OperatorCase{.name = case_name(desc) + "_" + how.name + "_" + what,
                                           .op = make_operator(type, size),
                                           .inputs = {desc},
                                           .fill = fill,
                                           .tolerance = f32_error(4),
                                           .absolute = f32_error(12) * gain * largest_of(desc.dtype, fill)});
  };
  const auto by = [](Scales scales) { return Attributes{{"scales", std::move(scales)}}; };
  const auto to = [](Sizes sizes) { return Attributes{{"sizes", std::move(sizes)}}; };
  constexpr Layout flat = Layout::linear;

  for (const TypeRow& row : type.type_rows) {
    const auto [dtype, layout] = row.formats[0];
    const bool is_i8 = dtype == DType::i8;
    const bool is_f8 = dtype == DType::f8e4m3fn;
    for (const Mode& how : modes) {
      const bool is_nearest = how.attributes[0].second == AttributeValue(std::string("nearest"));
      if (is_f8 && !is_nearest) continue;
      if (layout != flat) {
        for (const std::int64_t channels : {1, 8, 33, 64})
          add({dtype, layout, {2, channels, 5, 4}}, how, "x2", by({2}));
        add({dtype, layout, {1, 40, 7, 9}}, how, "x1_3_x0_6", by({1.3F, 0.6F}));
        add({dtype, layout, {2, 40, 5, 4}}, how, "to_9x3", to({9, 3}));
        add({dtype, layout, {0, 40, 5, 4}}, how, "x2", by({2}));
      } else {
        // Twice the size: the specialized kernels with whole and with partial strips, and the problems that they
        // refuse.
        for (const Extents& extents :
             {Extents{2, 3, 8, 16}, {1, 2, 7, 32}, {1, 1, 1, 8}, {2, 2, 5, 9}, {1, 2, 3, 1}, {1, 1, 1, 1}}) {
          add({dtype, flat, extents}, how, "x2", by({2}));
        }
        add({dtype, flat, {2, 3, 5, 4}}, how, "x3", by({3}));
        add({dtype, flat, {1, 3, 17, 24}}, how, "x0_5", by({0.5F}));
        add({dtype, flat, {1, 3, 9, 16}}, how, "x1_25_x0_625", by({1.25F, 0.625F}));
        add({dtype, flat, {1, 3, 6, 10}}, how, "to_9x32", to({9, 32}));
        add({dtype, flat, {1, 2, 9, 50}}, how, "to_1x16", to({1, 16}));
        add({dtype, flat, {1, 2, 9, 5}}, how, "to_9x5", to({9, 5}));
        add({dtype, flat, {2, 3, 21}}, how, "x2", by({2}));
        add({dtype, flat, {2, 3, 24}}, how, "x1_75", by({1.75F}));
        add({dtype, flat, {1, 2, 3, 4, 8}}, how, "x2", by({2}));
        add({dtype, flat, {1, 2, 5, 3, 16}}, how, "x0_7_x1_x1_5", by({0.7F, 1.F, 1.5F}));
        add({dtype, flat, {1, 2, 1, 3, 8}}, how, "to_1x6x16", to({1, 6, 16}));
        add({dtype, flat, {1, 2, 3, 8, 8}}, how, "to_1x16x16", to({1, 16, 16}));
        add({dtype, flat, {0, 2, 3, 4}}, how, "x2", by({2}));
        add({dtype, flat, {2, 2, 1, 3}}, how, "x0_5", by({0.5F}));
        for (const std::int64_t shift : {1, 3}) {
          add({dtype, flat, {1, 2, 4, 16}}, how, "x2_shift" + std::to_string(shift), by({2})).shift = shift;
          add({dtype, flat, {1, 2, 4, 16}}, how, "x1_5_shift" + std::to_string(shift), by({1.5F})).shift = shift;
        }
      }
      const TensorDesc usual{dtype, layout, {2, 40, 6, 8}};
      add(usual, how, "x2_zeros", by({2}), Fill::zeros);
      if (is_i8) continue;
      // Cubic results exceed the largest element, for which only 16-bit types leave room.
      if (how.attributes[0].second != AttributeValue(std::string("cubic")) || dtype == DType::f16) {
        add(usual, how, "x2_huge", by({2}), Fill::huge);
      }
      add(usual, how, "x2_special", by({2}), Fill::special);
      add(usual, how, "x1_6_special", by({1.6F}), Fill::special);
      if (is_nearest) add(usual, how, "x2_tiny", by({2}), Fill::tiny);
    }
    add({dtype, layout, {2, 64, 56, 56}}, nearest, "x2", by({2}));
    if (layout == flat) add({dtype, layout, {4, 64, 64, 64}}, nearest, "x2", by({2}));
    if (is_f8) continue;
    add({dtype, layout, {2, 64, 56, 56}}, linear_corners, "x2", by({2}));
    if (layout == flat) {
      add({dtype, layout, {4, 64, 64, 64}}, linear_corners, "x2", by({2}));
      add({dtype, layout, {1, 1, 2, 70000}}, linear, "to_3x140016", to({3, 140016}));
    }
  }
  // Outputs large enough for tables of indices: several rows per piece, narrow rows, pieces of a row; and rows of whole
  // vectors, several of which are equal.
  add({DType::f16, flat, {3, 3, 9, 19, 150}}, nearest, "x3_x3_x1_25", by({3.F, 3.F, 1.25F}));
  add({DType::bf16, flat, {9, 131, 21, 11}}, nearest_exact, "x3", by({3}));
  add({DType::f32, flat, {61, 91, 16, 5}}, nearest, "x1_6", by({1.6F}));
  add({DType::f16, flat, {1, 3, 7, 40001}}, nearest_exact, "x1_5_x2_5", by({1.5F, 2.5F}));
  add({DType::f32, flat, {4, 9, 40, 801}}, nearest_exact, "x1_5_x0_75", by({1.5F, 0.75F}));
  add({DType::bf16, flat, {3, 33, 7, 40, 22}}, nearest, "x1_x2_75_x4", by({1.F, 2.75F, 4.F}));
  add({DType::f16, flat, {3, 40, 47, 26}}, nearest, "x4", by({4}));
  add({DType::f32, flat, {3, 40, 31, 29}}, nearest_exact, "x3_x4", by({3.F, 4.F}));
  // Scales that are not exact in float. Frameworks round the coordinates as well and select other elements in places,
  // so these cases are larger than the cases that are compared with frameworks.
  for (const int denominator : {7, 10, 11, 13, 100}) {
    const Attributes size = by({23.F / static_cast<float>(denominator)});
    const std::string what = "x23_" + std::to_string(denominator);
    add({DType::f32, flat, {1, 8, 143, 91}}, nearest, what, size);
    add({DType::f32, flat, {1, 8, 143, 91}}, linear, what, size);
    add({DType::f16, flat, {1, 8, 143, 92}}, nearest, what, size);
    add({DType::f16, flat, {1, 8, 143, 92}}, linear, what, size);
  }
  for (const float a : {-0.5F, 0.F, 1.F}) {
    const std::string what = "a" + std::to_string(static_cast<int>(10 * a + 10));
    Attributes size = by({2.5F});
    size.emplace_back("cubic_a", a);
    add({DType::f32, flat, {1, 3, 6, 8}}, cubic, what, size);
  }
  for (const float x_scale : {1e-9F, 1.F, 1e6F, 1e30F}) {
    Attributes attributes = by({2});
    attributes.insert(attributes.end(), {{"x_scale", x_scale}, {"y_scale", 1e-9F}});
    const std::string what = "ratio" + std::to_string(static_cast<int>(std::log10(x_scale)) + 9);
    for (const Mode& how : {nearest, linear, cubic}) {
      for (const Layout layout : {flat, Layout::chw32}) {
        OperatorCase& test = add({DType::i8, layout, {1, 33, 4, 8}}, how, what, by({2}));
        Attributes all = how.attributes;
        all.insert(all.end(), attributes.begin(), attributes.end());
        test.op = make_operator(type, all);
        test.absolute = f32_error(48) * 128 * static_cast<double>(x_scale);
      }
    }
  }

  const auto refuse = [&](const TensorDesc& desc, const Mode& how, const std::string& what, const Attributes& size,
                          const std::string& message) { add(desc, how, "refused_" + what, size).refused = message; };
  refuse({DType::f8e4m3fn, flat, {1, 1, 2, 2}}, linear, "x2", by({2}), "does not take f8e4m3fn 1x1x2x2");
  refuse({DType::i32, flat, {1, 1, 2, 2}}, nearest, "x2", by({2}), "does not take i32 1x1x2x2");
  refuse({DType::f32, flat, {1, 1, 0, 2}}, nearest, "to_2x2", to({2, 2}), "no elements to sample from");
  refuse({DType::f32, Layout::chw32, {1, 1, 2, 2}}, nearest, "x2", by({2}), "does not take f32 chw32");
  refuse({DType::f16, Layout::hwc8, {1, 1, 2, 2, 2}}, nearest, "x2", by({2}), "does not take f16 hwc8");

  for (const Mode& how : {nearest, linear_corners}) {
    add({DType::f16, flat, {32771, 16, 32, 32}}, how, "x2", by({2})).large = true;
    add({DType::f16, flat, {32771, 16, 32, 48}}, how, "x1_5", by({1.5F})).large = true;
    add({DType::f16, Layout::hwc8, {32771, 13, 32, 32}}, how, "x2", by({2})).large = true;
    add({DType::i8, Layout::chw32, {32771, 17, 32, 32}}, how, "x2", by({2})).large = true;
  }
  // Only rows are resampled, and all rows together are too long for 32-bit offsets.
  add({DType::f16, flat, {33333, 1, 65536}}, linear, "x2", by({2})).large = true;
  return cases;
}

[[nodiscard]] inline std::vector<TimedCase> timings(const Upsampling& /*tag*/) {
  const auto resampling = [](const char* mode, const char* coordinates, float scale) {
    return Attributes{{"mode", std::string(mode)},
                      {"coordinate_mode", std::string(coordinates)},
                      {"nearest_mode", std::string("floor")},
                      {"scales", std::vector{scale}}};
  };
  const Attributes bilinear = resampling("linear", "align_corners", 2);
  const Attributes nearest = resampling("nearest", "asymmetric", 2);
  const TensorDesc usual{.extents = {16, 256, 64, 64}};
  const TensorDesc small{.extents = {1, 64, 56, 56}};
  std::vector<TimedCase> all =
      in_formats(linear_formats,
                 {{.attributes = bilinear, .inputs = {usual}, .of_copy = 0.93},
                  {.attributes = nearest, .inputs = {usual}, .of_copy = 0.95},
                  {.attributes = resampling("linear", "half_pixel", 2), .inputs = {usual}},
                  {.attributes = resampling("linear", "half_pixel", 1.5F), .inputs = {usual}},
                  {.attributes = resampling("linear", "half_pixel", 0.5F), .inputs = {usual}},
                  {.attributes = resampling("linear", "half_pixel", 2), .inputs = {{.extents = {16, 256, 57, 57}}}},
                  {.attributes = resampling("cubic", "half_pixel", 2), .inputs = {{.extents = {16, 64, 64, 64}}}},
                  {.attributes = bilinear, .inputs = {{.extents = {4, 32, 16, 64, 64}}}},
                  {.attributes = bilinear, .inputs = {small}},
                  {.attributes = nearest, .inputs = {small}}});
  const std::vector<TimedCase> in_vectors =
      in_formats(vector_formats, {{.attributes = bilinear, .inputs = {usual}, .of_copy = 0.93},
                                  {.attributes = nearest, .inputs = {usual}, .of_copy = 0.95},
                                  {.attributes = bilinear, .inputs = {small}}});
  all.insert(all.end(), in_vectors.begin(), in_vectors.end());
  return all;
}

/// Generates random images, and some signals and volumes, resampled by a common factor, by any factor, or to any size.
/// Factors are multiples of a quarter and signals are short, so that PyTorch, which computes coordinates in f32,
/// selects the same elements; for the same reason cases of "nearest" have factors and no sizes. PyTorch supports cubic
/// interpolation of images only.
[[nodiscard]] inline TimedCase draw(const Upsampling& /*tag*/, Draw& draw) {
  constexpr SizeRange batch{1, 32};
  constexpr SizeRange quarters{2, 16};
  Extents x;
  std::vector<float> scales;
  const auto make = [&] {
    std::vector<std::int64_t> sizes{draw.size(batch), draw_channels(draw, 1, 512)};
    const std::int64_t axes = draw.one_of({1, 2, 2, 2, 2, 3});
    const SizeRange side = axes == 1 ? SizeRange{100, 2000} : axes == 2 ? SizeRange{7, 512} : SizeRange{5, 64};
    scales.assign(static_cast<std::size_t>(axes), draw.one_of({2.F, 2.F, 2.F, 3.F, 4.F, 1.5F, 0.5F}));
    if (draw.chance(30)) {
      for (float& scale : scales) scale = static_cast<float>(draw.size(quarters)) / 4;
    }
    std::vector<std::int64_t> results = sizes;
    for (std::size_t axis = 0; axis < scales.size(); ++axis) {
      sizes.push_back(draw.size(side));
      results.push_back(static_cast<std::int64_t>(static_cast<float>(sizes.back()) * scales[axis]));
    }
    x = extents_of(sizes);
    return extents_of(results);
  };
  // The range applies to the output, which is almost always the larger tensor.
  const Extents y = draw.shape(make);
  Attributes attributes;
  std::string mode = draw.one_of<std::string>({"nearest", "nearest", "linear", "linear", "linear", "cubic"});
  if (mode != "nearest" && draw.chance(30)) {
    attributes.emplace_back("sizes", std::vector<std::int64_t>(y.begin() + 2, y.end()));
  } else {
    attributes.emplace_back("scales", scales);
  }
  if (mode == "cubic" && x.rank() != 4) mode = "linear";
  std::string coordinates = mode == "nearest" || draw.chance(50) ? "half_pixel" : "align_corners";
  attributes.emplace_back("mode", mode);
  if (mode == "nearest") {
    // These are PyTorch's modes "nearest" and "nearest-exact".
    const bool is_plain = draw.chance(70);
    if (is_plain) coordinates = "asymmetric";
    attributes.emplace_back("nearest_mode", std::string(is_plain ? "floor" : "round_prefer_ceil"));
  }
  attributes.emplace_back("coordinate_mode", coordinates);
  TensorDesc desc{.dtype = draw.one_of(drawn_dtypes), .extents = x};
  if (x.rank() == 4 && desc.dtype != DType::f32 && draw.chance(20)) desc.layout = Layout::hwc8;
  return {.attributes = attributes, .inputs = {desc}};
}

}  // namespace graft::ops
