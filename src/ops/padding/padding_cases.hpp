// Cases of Padding.
#pragma once

#include <array>
#include <limits>

#include "ops/operator_case.hpp"
#include "ops/padding/padding.hpp"
#include "ops/random_cases.hpp"

namespace graft::ops {

[[nodiscard]] inline std::vector<OperatorCase> cases(const Padding& /*tag*/) {
  using Pads = std::vector<std::int64_t>;
  const OperatorType& type = operator_type<Padding>();
  std::vector<OperatorCase> cases;
  const auto add = [&](const TensorDesc& desc, const char* mode, const Pads& pads, const std::string& what = "",
                       Fill fill = Fill::normal, Attributes attributes = {}) -> OperatorCase& {
    attributes.insert(attributes.end(), {{"mode", std::string(mode)}, {"pads", pads}});
    if (attributes.size() == 2) attributes.insert(attributes.end(), {{"value", 1.25F}});
    std::string name = case_name(desc) + "_" + mode;
    for (const std::int64_t pad : pads) name += pad < 0 ? "_m" + std::to_string(-pad) : "_" + std::to_string(pad);
    // Elements are copied; i8 with two different scales is divided and multiplied once.
    return cases.emplace_back(OperatorCase{.name = name + what,
                                           .op = make_operator(type, attributes),
                                           .inputs = {desc},
                                           .fill = fill,
                                           .tolerance = f32_error(4)});
  };
  constexpr std::array modes{"constant", "reflect", "symmetric", "edge", "wrap"};

  struct Sizes {
    Extents extents;
    std::vector<Pads> pads;
  };
  const std::vector<Sizes> sizes{
      {{}, {{}}},
      {{1}, {{0, 0}, {1, 0}, {2, 3}}},
      {{5}, {{4, 4}, {3, 0}, {-1, -2}, {-2, 3}}},
      {{7}, {{20, 33}, {-3, 20}}},
      {{100003}, {{3, 2}}},
      {{3, 16}, {{0, 16, 0, 16}, {2, 0, 2, 0}, {1, -1, -1, 1}}},
      {{7000, 3}, {{0, 1, 0, 1}}},
      {{3, 30000}, {{1, 0, 1, 0}, {0, 1, 0, 2}}},
      {{2, 3, 37}, {{0, 0, 3, 0, 0, 3}, {1, 1, 1, 1, 1, 1}}},
      {{4, 8, 64}, {{0, 1, 0, 0, 1, 0}, {0, 0, 16, 0, 0, 16}}},
      {{2, 3, 5, 7},
       {{0, 0, 3, 3, 0, 0, 3, 3},
        {0, 2, 0, 0, 0, 1, 0, 0},
        {1, 0, 0, 2, 0, 0, 0, 0},
        {0, 0, 6, 9, 0, 0, 11, 30},
        {0, 0, -1, -2, 0, 0, -1, -1},
        {0, 0, 2, -3, 0, 0, -1, 4}}},
      {{2, 9, 56, 56}, {{0, 0, 1, 1, 0, 0, 1, 1}, {0, 0, 3, 2, 0, 0, 0, 5}}},
      {{3, 17, 33, 128}, {{0, 0, 3, 3, 0, 0, 3, 3}, {0, 0, 2, 0, 0, 0, 2, 0}}},
      {{2, 20, 31, 3}, {{0, 2, 2, 0, 0, 2, 2, 0}}},
      {{1, 3, 4, 5, 9}, {{0, 0, 1, 2, 3, 0, 0, 3, 2, 1}, {0, 1, 1, 0, 1, 0, 1, 1, 0, 1}}},
      {{1, 2, 3, 1, 5, 1, 2, 7}, {{1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 2}}},
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8, DType::f8e4m3fn}) {
    for (const Sizes& each : sizes) {
      for (const Pads& pads : each.pads) {
        for (const char* mode : modes) add({dtype, Layout::linear, each.extents}, mode, pads);
      }
    }
    for (const std::int64_t shift : {1, 3}) {
      for (const char* mode : modes) {
        const std::string what = "_shift" + std::to_string(shift);
        add({dtype, Layout::linear, {2, 3, 9, 21}}, mode, {0, 0, 2, 1, 0, 0, 1, 3}, what).shift = shift;
      }
    }
    // The cases have an input without elements, or an output without elements.
    add({dtype, Layout::linear, {0, 3, 5}}, "reflect", {0, 0, 2, 0, 0, 2});
    add({dtype, Layout::linear, {2, 0, 5}}, "constant", {0, 1, 2, 0, 1, 2});
    add({dtype, Layout::linear, {2, 3, 5}}, "reflect", {0, -3, 2, 0, 0, 2});
  }
  for (const TypeRow& row : type.type_rows) {
    const auto [dtype, layout] = row.formats[0];
    const bool is_f8 = dtype == DType::f8e4m3fn;
    const Pads usual{0, 0, 3, 1, 0, 0, 2, 3};
    for (const char* mode : modes) {
      if (layout != Layout::linear) {
        for (const std::int64_t channels : {1, 7, 8, 16, 31, 32, 33, 64}) {
          add({dtype, layout, {2, channels, 5, 9}}, mode, usual);
        }
        add({dtype, layout, {2, 40, 5, 9}}, mode, {0, 0, 2, 0, 0, 0, 1, 0});
        add({dtype, layout, {2, 40, 5, 9}}, mode, {2, 0, 0, 0, 1, 0, 0, 0});
        add({dtype, layout, {2, 40, 13, 30}}, mode, {1, 0, 20, -2, 0, 0, -1, 75});
        add({dtype, layout, {2, 33, 5, 9}}, mode, {0, 0, 0, 0, 0, 0, 0, 0});
      }
      add({dtype, layout, {2, 40, 6, 9}}, mode, usual, "_special", Fill::special);
      add({dtype, layout, {2, 40, 6, 9}}, mode, usual, "_scales", Fill::normal,
          {{"value", -0.7F}, {"x_scale", 0.05F}, {"y_scale", is_f8 ? 0.05F : 0.03F}});
    }
    add({dtype, layout, {2, 40, 6, 9}}, "constant", usual, "_lowest", Fill::huge,
        {{"value", -std::numeric_limits<float>::infinity()}, {"x_scale", is_f8 ? 1e-9F : 0.05F}, {"y_scale", 1e-9F}});
    if (layout != Layout::linear) {
      add({dtype, layout, {2, 40, 6, 9}}, "constant", {0, 1, 0, 0, 0, 0, 0, 0}).refused = "does not take";
    }
  }
  add({DType::f8e4m3fn, Layout::linear, {2, 3}}, "edge", {1, 1, 1, 1}, "_scales", Fill::normal,
      {{"x_scale", 0.5F}, {"y_scale", 0.25F}})
      .refused = "does not take f8e4m3fn 2x3";
  add({DType::i32, Layout::linear, {2, 3}}, "edge", {1, 1, 1, 1}).refused = "does not take i32 2x3";
  add({DType::f32, Layout::linear, {2, 3}}, "edge", {1, 1}).refused = "has 2 elements; it must have 4 for rank 2";
  add({DType::f32, Layout::linear, {2, 3}}, "edge", {-2, 0, -1, 0}).refused = "crops axis 0 by more elements";
  add({DType::f32, Layout::linear, {2, 0}}, "wrap", {0, 1, 0, 1}).refused = "wrap, which cannot pad axis 1";
  add({DType::f16, Layout::linear, {32771, 64, 32, 32}}, "reflect", {0, 0, 1, 1, 0, 0, 1, 1}).large = true;
  add({DType::i8, Layout::linear, {65539, 32771}}, "symmetric", {0, 2, 0, 1}).large = true;
  add({DType::f16, Layout::hwc8, {32771, 60, 32, 32}}, "wrap", {0, 0, 1, 1, 0, 0, 1, 1}).large = true;
  add({DType::i8, Layout::chw32, {32771, 60, 32, 32}}, "edge", {0, 0, 1, 1, 0, 0, 1, 1}).large = true;
  return cases;
}

[[nodiscard]] inline std::vector<TimedCase> timings(const Padding& /*tag*/) {
  using Pads = std::vector<std::int64_t>;
  const auto timed = [](const char* mode, const Pads& pads, const Extents& extents, double of_copy = 0) {
    return TimedCase{.attributes = {{"mode", std::string(mode)}, {"pads", pads}},
                     .inputs = {{.extents = extents}},
                     .of_copy = of_copy};
  };
  const Pads three{0, 0, 3, 3, 0, 0, 3, 3};
  const Pads one{0, 0, 1, 1, 0, 0, 1, 1};
  const std::vector<TimedCase> shapes{
      timed("reflect", three, {16, 256, 128, 128}, 0.95),
      timed("constant", one, {16, 256, 128, 128}),
      timed("edge", three, {16, 256, 128, 128}),
      timed("wrap", {0, 0, 16, 16, 0, 0, 16, 16}, {16, 256, 128, 128}),
      timed("symmetric", {0, 0, 0, 0, 0, 0, 3, 3}, {16, 256, 128, 125}),
      timed("reflect", one, {32, 2048, 7, 7}),
      timed("reflect", {0, 3, 3, 0, 0, 3, 3, 0}, {64, 512, 512, 3}),
      timed("reflect", {0, 0, 1, 1, 1, 0, 0, 1, 1, 1}, {4, 64, 32, 64, 64}),
      timed("reflect", {0, 0, 40, 0, 0, 40}, {16, 64, 100000}),
      timed("constant", {0, 8, 0, 0, 0, 8, 0, 0}, {16, 256, 128, 128}),
      timed("reflect", one, {1, 64, 56, 56}),
      timed("reflect", three, {1, 3, 224, 224}),
  };
  std::vector<TimedCase> list = in_formats(linear_formats, shapes);
  const std::vector<TimedCase> vectorized = in_formats(
      vector_formats, {timed("reflect", three, {16, 256, 128, 128}, 0.95), timed("reflect", one, {1, 100, 56, 56})});
  list.insert(list.end(), vectorized.begin(), vectorized.end());
  return list;
}

/// Generates random signals, images and volumes that are padded along their spatial axes by up to half their size.
[[nodiscard]] inline TimedCase draw(const Padding& /*tag*/, Draw& draw) {
  constexpr SizeRange batch{1, 64};
  constexpr std::int64_t most_padding = 32;
  const Extents extents = draw.shape([&] {
    std::vector<std::int64_t> sizes{draw.size(batch), draw_channels(draw, 1, 1024)};
    const std::int64_t axes = draw.one_of({1, 2, 2, 2, 3});
    const SizeRange side = axes == 1 ? SizeRange{100, 200000} : axes == 2 ? SizeRange{7, 1024} : SizeRange{5, 128};
    for (std::int64_t axis = 0; axis < axes; ++axis) sizes.push_back(draw.size(side));
    return extents_of(sizes);
  });
  const int rank = extents.rank();
  std::vector<std::int64_t> pads(static_cast<std::size_t>(2 * rank));
  const bool is_equal = draw.chance(60);  // The pad is the same on both sides of all axes.
  const std::int64_t usual = draw.size({1, 3});
  for (int axis = 2; axis < rank; ++axis) {
    for (const int at : {axis, rank + axis}) {
      const SizeRange pad{0, std::min(extents[axis] / 2, most_padding)};
      pads[static_cast<std::size_t>(at)] = is_equal ? std::min(usual, pad.most) : draw.integer(pad);
    }
  }
  TensorDesc x{.dtype = draw.one_of(drawn_dtypes), .extents = extents};
  if (rank == 4 && x.dtype != DType::f32 && draw.chance(20)) x.layout = Layout::hwc8;
  return {.attributes = {{"mode", draw.one_of<std::string>({"constant", "reflect", "symmetric", "edge", "wrap"})},
                         {"pads", pads}},
          .inputs = {x}};
}

}  // namespace graft::ops
