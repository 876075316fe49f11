// Cases of InstanceNorm.
#pragma once

#include <algorithm>

#include "ops/instance_norm/instance_norm.hpp"
#include "ops/operator_case.hpp"
#include "ops/random_cases.hpp"

namespace graft::ops {

[[nodiscard]] inline std::vector<OperatorCase> cases(const InstanceNorm& /*tag*/) {
  using enum DType;
  const OperatorType& type = operator_type<InstanceNorm>();
  std::vector<OperatorCase> cases;
  // The first `given` of scale and bias are inputs.
  const auto add = [&](const TensorDesc& x, const std::string& what = "", Fill fill = Fill::normal, int given = 0,
                       Attributes attributes = {}) -> OperatorCase& {
    attributes.insert(attributes.end(), {{"x_scale", 0.05F}, {"y_scale", 0.03F}});
    std::vector<TensorDesc> inputs{x};
    for (int i = 0; i < given; ++i) inputs.push_back({f32, Layout::linear, {x.extents[1]}});
    // A thread adds at most 64 squares at a time, and parts are joined in a tree of at most 16 levels with three
    // roundings each. The result has half of the variance's relative error. If the bias cancels the result, the error
    // is that of the terms, which are less than 8.
    const std::int64_t length = x.extents.element_count() / std::max<std::int64_t>(1, x.extents[0] * x.extents[1]);
    const double tolerance = f32_error((static_cast<double>(std::min<std::int64_t>(length, 64)) + 48) / 2 + 8);
    return cases.emplace_back(OperatorCase{.name = case_name(x) + what,
                                           .op = make_operator(type, attributes),
                                           .inputs = inputs,
                                           .fill = fill,
                                           .tolerance = tolerance,
                                           .absolute = 8 * tolerance});
  };
  const auto numbers = [](std::int64_t count, float first) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(first + 0.125F * static_cast<float>(i % 5));
    return values;
  };

  const std::vector<Extents> shapes{
      // The channels fill a part of a warp, or a warp.
      {1, 1, 1},
      {2, 3, 7},
      {0, 3, 5},
      {2, 0, 5},
      {2, 3, 0, 5},
      {2, 3, 4, 4},
      {5, 7, 3, 3},
      {300, 3, 2, 2},
      {40, 70, 7, 7},
      {1, 3, 1, 1, 1},
      {2, 3, 4, 5, 6},
      {2, 3, 31},
      {2, 3, 33},
      {3, 5, 127},
      {3, 5, 128},
      {2, 2, 16, 32},
      {2, 3, 23, 23},
      {2, 5, 14, 14},
      {7, 3, 129},
      {7, 3, 143},
      // The channels fill a block.
      {2, 3, 32, 64},
      {2, 3, 40, 52},
      {1, 64, 56, 56},
      {1, 2, 8, 16, 16},
      {2, 3, 8209},
      {150, 1, 64, 128},
      // The channels fill a cluster.
      {1, 3, 64, 128},
      {1, 2, 128, 256},
      {1, 1, 65, 1000},
      {1, 2, 256, 256},
      {1, 1, 512, 512},
      {1, 2, 401, 403},
      // The channels are too long for a cluster: for f32, with an odd size, for every type.
      {1, 2, 520, 520},
      {1, 1, 1025, 1027},
      {1, 1, 1024, 2048},
  };
  for (const DType dtype : {f32, f16, bf16, i8}) {
    for (const Extents& extents : shapes) add({dtype, Layout::linear, extents});
    for (const std::int64_t shift : {1, 3}) {
      const std::string what = "_shift" + std::to_string(shift);
      add({dtype, Layout::linear, {2, 3, 16, 16}}, what).shift = shift;
      add({dtype, Layout::linear, {2, 3, 128, 16}}, what, Fill::normal, 2).shift = shift;
      add({dtype, Layout::linear, {1, 1, 300, 256}}, what).shift = shift;
    }
    for (const Extents& extents : {Extents{2, 5, 8, 24}, Extents{2, 3, 17, 19}, Extents{1, 5, 64, 128}}) {
      const TensorDesc x{dtype, Layout::linear, extents};
      const std::vector<float> scales = numbers(extents[1], 0.75F);
      const std::vector<float> bias = numbers(extents[1], -0.25F);
      for (const char* activation : {"none", "relu", "leaky_relu"}) {
        const std::string what = std::string("_") + activation;
        for (const int given : {0, 1, 2}) {
          add(x, what + "_given" + std::to_string(given), Fill::normal, given,
              {{"activation", std::string(activation)}, {"alpha", 0.2F}});
        }
        const Attributes attributes{
            {"activation", std::string(activation)}, {"alpha", -1.5F}, {"scales", scales}, {"bias", bias}};
        add(x, what + "_attributes", Fill::normal, 0, attributes);
        add(x, what + "_special", Fill::special, 0, attributes);
      }
      add(x, "_scales", Fill::normal, 0, {{"scales", scales}});
      add(x, "_scale_and_attribute", Fill::normal, 1, {{"scales", scales}, {"bias", bias}});
      const Attributes both{{"scales", scales}, {"bias", bias}};
      add(x, "_offset", Fill::offset, 0, both);
      add(x, "_huge", Fill::huge, 0, both);
      add(x, "_tiny", Fill::tiny, 0, both);
      add(x, "_zeros", Fill::zeros, 0, both);
      add(x, "_zeros_eps0", Fill::zeros, 0, {{"epsilon", 0.F}}).may_overflow = true;  // 0 / 0
      add(x, "_eps0", Fill::normal, 0, {{"epsilon", 0.F}});
      add(x, "_eps3", Fill::normal, 0, {{"epsilon", 3.F}});
    }
    for (const Extents& extents : {Extents{1, 2, 128, 256}, Extents{1, 2, 401, 403}}) {
      add({dtype, Layout::linear, extents}, "_offset", Fill::offset);
      add({dtype, Layout::linear, extents}, "_huge", Fill::huge);
      add({dtype, Layout::linear, extents}, "_special", Fill::special);
    }
  }
  add({f32, Layout::linear, {2, 3}}).refused = "x has rank 2; the rank must be between 3 and 5";
  add({f32, Layout::linear, {1, 2, 1, 2, 1, 2}}).refused = "x has rank 6; the rank must be between 3 and 5";
  add({i32, Layout::linear, {2, 3, 4}}).refused = "does not take i32 2x3x4";
  add({f32, Layout::linear, {2, 3, 4}}, "_two_scales", Fill::normal, 0, {{"scales", numbers(2, 1)}}).refused =
      "scale has shape 2; it must have one value for each of 3 channels";
  add({f32, Layout::linear, {2, 3, 4}}, "_four_biases", Fill::normal, 1, {{"bias", numbers(4, 1)}}).refused =
      "bias has shape 4; it must have one value for each of 3 channels";
  add({f16, Layout::linear, {32771, 64, 32, 32}}).large = true;
  add({i8, Layout::linear, {524309, 3, 37, 37}}, "", Fill::normal, 2).large = true;
  add({bf16, Layout::linear, {1100, 1, 1500, 1500}}).large = true;
  return cases;
}

[[nodiscard]] inline std::vector<TimedCase> timings(const InstanceNorm& /*tag*/) {
  const auto timed = [](const Extents& extents, double of_copy = 0) {
    const TensorDesc channels{.extents = {extents[1]}};
    return TimedCase{.inputs = {{.extents = extents}, channels, channels}, .of_copy = of_copy};
  };
  const std::vector<TimedCase> shapes{
      timed({16, 256, 128, 128}, 0.97), timed({1, 128, 256, 256}, 0.70), timed({1, 64, 56, 56}),
      timed({1, 32, 512, 512}),         timed({1, 32, 720, 1280}),       timed({64, 512, 14, 14}),
      timed({16, 64, 127, 127}),        timed({2, 32, 32, 128, 128}),
  };
  return in_formats(linear_formats, shapes);
}

/// Generates random signals, images and volumes with a scale and a bias, some of them with an activation.
[[nodiscard]] inline TimedCase draw(const InstanceNorm& /*tag*/, Draw& draw) {
  constexpr SizeRange batch{1, 64};
  const Extents extents = draw.shape([&] {
    std::vector<std::int64_t> sizes{draw.size(batch), draw_channels(draw, 3, 1024)};
    const std::int64_t axes = draw.one_of({1, 2, 2, 2, 3});
    const SizeRange side = axes == 1 ? SizeRange{100, 200000} : axes == 2 ? SizeRange{7, 1024} : SizeRange{5, 128};
    for (std::int64_t axis = 0; axis < axes; ++axis) sizes.push_back(draw.size(side));
    return extents_of(sizes);
  });
  const TensorDesc channels{.extents = {extents[1]}};
  return {.attributes = {{"activation", draw.one_of<std::string>({"none", "relu", "leaky_relu"})}},
          .inputs = {{.dtype = draw.one_of(drawn_dtypes), .extents = extents}, channels, channels}};
}

}  // namespace graft::ops
