// Cases of Normalize.
#pragma once

#include <algorithm>

#include "ops/normalize/normalize.hpp"
#include "ops/operator_case.hpp"
#include "ops/random_cases.hpp"

namespace graft::ops {

[[nodiscard]] inline std::vector<OperatorCase> cases(const Normalize& /*tag*/) {
  using enum DType;
  const OperatorType& type = operator_type<Normalize>();
  std::vector<OperatorCase> cases;
  struct Options {
    bool across = false;
    bool shared = false;
    int given = 1;  ///< The number of inputs of the case in addition to x.
  };
  const auto add = [&](const TensorDesc& x, const Options& options, const std::string& what = "",
                       Fill fill = Fill::normal, Attributes attributes = {}) -> OperatorCase& {
    attributes.insert(attributes.end(), {{"across_spatial", std::int64_t{options.across}},
                                         {"channel_shared", std::int64_t{options.shared}},
                                         {"x_scale", 0.05F},
                                         {"y_scale", 1 / 64.F}});
    std::vector<TensorDesc> inputs{x};
    if (options.given > 0) {
      const std::int64_t channels = x.extents.rank() > 1 ? x.extents[1] : 1;
      inputs.push_back({f32, Layout::linear, {options.shared ? 1 : channels}});
    }
    // The error is that of L2Normalize plus that of one more product.
    double length = 1;
    for (int axis = 1; axis < (options.across ? x.extents.rank() : std::min(2, x.extents.rank())); ++axis) {
      length *= static_cast<double>(x.extents[axis]);
    }
    const double additions = std::min(length, 128 + length / 8 + 16);
    return cases.emplace_back(OperatorCase{
        .name = case_name(x) + (options.across ? "_across" : "") + (options.shared ? "_shared" : "") + what,
        .op = make_operator(type, attributes),
        .inputs = inputs,
        .fill = fill,
        .tolerance = f32_error(additions / 2 + 8)});
  };
  const auto numbers = [](std::int64_t count) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(20 - 0.5F * static_cast<float>(i % 90));
    return values;
  };

  const std::vector<Extents> shapes{
      // Each norm is over a contiguous row, whose length may be a multiple of 128 bits or not.
      {3, 5},
      {7, 64},
      {9, 48},
      {2, 5000},
      {3, 17, 1, 1},
      {0, 3, 5},
      {2, 0, 5},
      {2, 3, 0, 5},
      // Each norm is over a column or, with across_spatial, over a row of one channel or of several.
      {1, 1, 1},
      {2, 3, 10, 16},
      {3, 17, 7, 7},
      {2, 36, 3, 3},
      {1, 512, 38, 38},
      {1, 64, 56, 56},
      {2, 256, 16, 32},
      {2, 257, 9, 5},
      {2, 5, 3, 4, 8},
      {2, 3, 2, 5, 1, 4, 3, 2},
      {2, 300, 6, 6},
      {3, 512, 7, 7},
      // The columns are too long for registers and, with across_spatial, the rows are too long for a cluster.
      {1, 2056, 2, 8},
      {1, 4100, 7, 7},
      {1, 600, 50, 50},
      {2, 601, 49, 51},
  };
  for (const DType dtype : {f32, f16, bf16, i8}) {
    for (const Extents& extents : shapes) {
      for (const bool across : {false, true}) {
        add({dtype, Layout::linear, extents}, {.across = across});
        add({dtype, Layout::linear, extents}, {.across = across, .shared = true});
      }
    }
    for (const bool across : {false, true}) {
      add({dtype, Layout::linear, {9, 64}}, {.across = across}, "_shift1").shift = 1;
      add({dtype, Layout::linear, {2, 40, 4, 16}}, {.across = across}, "_shift3").shift = 3;
    }
  }
  // The cases have many rows, and columns of a large tensor, both of which begin between two multiples of a vector.
  add({f16, Layout::linear, {43007, 37}}, {});
  add({bf16, Layout::linear, {10009, 3, 9, 6}}, {.across = true});
  add({f16, Layout::linear, {60, 41, 31, 37}}, {});
  add({bf16, Layout::linear, {60, 41, 31, 37}}, {.shared = true});
  for (const TypeRow& row : type.type_rows) {
    const auto [dtype, layout] = row.formats[0];
    const TensorDesc x{dtype, layout, {2, 40, 4, 16}};
    if (layout != Layout::linear) {
      for (const std::int64_t channels : {1, 7, 8, 9, 31, 32, 33, 64, 100, 256, 520, 2048}) {
        add({dtype, layout, {2, channels, 3, 5}}, {});
      }
      add({dtype, layout, {0, 8, 3, 5}}, {});
      add({dtype, layout, {2, 100, 3, 5}}, {.shared = true});
      add(x, {.across = true}).refused = "does not take";
    }
    for (const bool across : {false, true}) {
      if (across && layout != Layout::linear) continue;
      add(x, {.across = across, .given = 0}, "_no_weights");
      add(x, {.across = across, .given = 0}, "_weights", Fill::normal, {{"weights", numbers(40)}});
      add(x, {.across = across, .shared = true, .given = 0}, "_weights", Fill::normal, {{"weights", numbers(1)}});
      for (const float epsilon : {0.F, 30.F}) {
        const std::string what = epsilon == 0 ? "_eps0" : "_eps30";
        const Attributes attributes{{"epsilon", epsilon}, {"weights", numbers(40)}};
        add(x, {.across = across, .given = 0}, what, Fill::normal, attributes);
        add(x, {.across = across, .given = 0}, what + "_zeros", Fill::zeros, attributes).may_overflow =
            epsilon == 0;  // 0 / 0
        add(x, {.across = across, .given = 0}, what + "_special", Fill::special, attributes);
      }
      add(x, {.across = across, .given = 0}, "_huge", Fill::huge, {{"weights", numbers(40)}});
      add(x, {.across = across, .given = 0}, "_tiny", Fill::tiny, {{"weights", numbers(40)}});
    }
  }
  add({f32, Layout::linear, {3}}, {}).refused = "x has rank 1; the rank must be between 2 and 8";
  add({i32, Layout::linear, {2, 3}}, {}).refused = "does not take i32 2x3";
  add({f32, Layout::linear, {2, 3}}, {.given = 0}, "_two_weights", Fill::normal, {{"weights", numbers(2)}}).refused =
      "scale has shape 2; it must have one value for each of 3 channels, because channel_shared is 0";
  add({f32, Layout::linear, {2, 3}}, {.shared = true, .given = 0}, "_three_weights", Fill::normal,
      {{"weights", numbers(3)}})
      .refused = "scale has shape 3; it must have one value, because channel_shared is 1";
  add({f16, Layout::linear, {32771, 64, 32, 32}}, {}).large = true;
  add({i8, Layout::linear, {32771, 64, 32, 32}}, {.across = true}).large = true;
  add({f16, Layout::hwc8, {32771, 60, 32, 32}}, {}).large = true;
  add({i8, Layout::chw32, {32771, 60, 32, 32}}, {}).large = true;
  return cases;
}

/// Returns problems of the size of L2Normalize's timings and of SSD's conv4_3.
[[nodiscard]] inline std::vector<TimedCase> timings(const Normalize& /*tag*/) {
  const auto timed = [](bool across, const Extents& extents, double of_copy = 0) {
    return TimedCase{.attributes = {{"across_spatial", std::int64_t{across}}},
                     .inputs = {{.extents = extents}, {.extents = {extents[1]}}},
                     .of_copy = of_copy};
  };
  std::vector<TimedCase> list = in_formats(
      linear_formats, {timed(false, {16, 256, 128, 128}, 0.93), timed(false, {32, 512, 38, 38}),
                       timed(true, {32, 512, 38, 38}), timed(false, {1, 512, 38, 38}), timed(false, {1, 64, 56, 56})});
  const std::vector<TimedCase> vectorized = in_formats(vector_formats, {timed(false, {16, 256, 128, 128}, 0.93)});
  list.insert(list.end(), vectorized.begin(), vectorized.end());
  return list;
}

/// Generates random feature maps that are normalized over their channels or over each whole item.
[[nodiscard]] inline TimedCase draw(const Normalize& /*tag*/, Draw& draw) {
  constexpr SizeRange batch{1, 64};
  constexpr SizeRange image{5, 300};
  const Extents extents = draw.shape([&] {
    return Extents{draw.size(batch), draw_channels(draw, 8, 1024), draw.size(image), draw.size(image)};
  });
  const bool across = draw.chance(30);
  TensorDesc x{.dtype = draw.one_of(drawn_dtypes), .extents = extents};
  if (!across && x.dtype != DType::f32 && draw.chance(30)) x.layout = Layout::hwc8;
  return {.attributes = {{"across_spatial", std::int64_t{across}}}, .inputs = {x, {.extents = {extents[1]}}}};
}

}  // namespace graft::ops
