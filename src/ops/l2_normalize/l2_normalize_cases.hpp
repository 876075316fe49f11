// Cases of L2Normalize.
#pragma once

#include <algorithm>

#include "core/reduction.hpp"
#include "ops/l2_normalize/l2_normalize.hpp"
#include "ops/operator_case.hpp"
#include "ops/random_cases.hpp"

namespace graft::ops {

[[nodiscard]] inline std::vector<OperatorCase> cases(const L2Normalize& /*tag*/) {
  using Axes = std::vector<std::int64_t>;
  const OperatorType& type = operator_type<L2Normalize>();
  std::vector<OperatorCase> cases;
  const auto add = [&](const TensorDesc& desc, const Axes& axes, const std::string& what = "", Fill fill = Fill::normal,
                       Attributes attributes = {}) -> OperatorCase& {
    attributes.insert(attributes.end(), {{"axes", axes}, {"x_scale", 0.05F}, {"y_scale", 1 / 127.F}});
    std::string name = case_name(desc) + "_axes";
    for (const std::int64_t axis : axes) name += axis < 0 ? "_m" + std::to_string(-axis) : "_" + std::to_string(axis);
    // A thread adds at most 128 squares, or an eighth of a long vector, and the sums of all threads are added in a
    // tree. The norm has half of the sum's relative error; the root, the division, the product and the scales of i8 add
    // their own errors.
    ReductionPlan plan;
    const bool valid = plan_reduction(desc.extents, axes, plan).ok();
    const double length = valid ? static_cast<double>(plan.reduced_count) : 0;
    const double additions = std::min(length, 128 + length / 8 + 16);
    return cases.emplace_back(OperatorCase{.name = name + what,
                                           .op = make_operator(type, attributes),
                                           .inputs = {desc},
                                           .fill = fill,
                                           .tolerance = f32_error(additions / 2 + 6)});
  };

  struct Layouts {
    Extents extents;
    std::vector<Axes> axes;
  };
  const std::vector<Layouts> shapes{
      // rows: part of a warp, a warp, a block, more than a block holds
      {{1}, {{0}}},
      {{7}, {{-1}}},
      {{16}, {{0}}},
      {{0, 5}, {{1}, {0}}},
      {{5, 0}, {{1}, {0}}},
      {{300, 3}, {{1}}},
      {{33, 31}, {{1}, {0}, {0, 1}}},
      {{9, 64}, {{1}, {0}}},
      {{67, 127}, {{1}}},
      {{67, 128}, {{1}, {0}}},
      {{3, 129}, {{-1}}},
      {{65, 512}, {{1}}},
      {{5, 1031}, {{1}}},
      {{3, 4096}, {{1}}},
      {{3, 8192}, {{1}}},
      {{2, 8209}, {{1}}},
      {{3, 32768}, {{1}}},
      // rows: a cluster of blocks, with and without vectors
      {{3, 65536}, {{1}}},
      {{1, 20000}, {{1}}},
      // Rows begin between two multiples of a vector; the shortest are read element by element.
      {{50, 5}, {{1}}},
      {{50, 18}, {{1}}},
      {{300, 21}, {{1}}},
      {{7, 36}, {{1}}},
      {{40, 203}, {{1}}},
      {{5, 3000}, {{1}}},
      // Rows are too long for a cluster, or consist of pieces: of a block and of a cluster, of whole vectors or not.
      {{2, 1048592}, {{1}}},
      {{3, 1048601}, {{1}}},
      {{4, 3, 128, 128}, {{0, 2, 3}}},
      {{4, 3, 128, 129}, {{0, 2, 3}}},
      {{4, 3, 13, 47}, {{0, 2, 3}}},
      {{2, 65001}, {{1}}},
      // columns: one thread high, several, with and without vectors, more than registers hold
      {{2, 3, 10, 16}, {{1}, {2}, {3}, {2, 3}, {1, 2, 3}, {0, 2, 3}, {0, 1}, {0, 3}, {1, 3}, {0, 1, 2, 3}}},
      {{3, 17, 7, 7}, {{1}, {-3}, {0, 2}, {1, 2}}},
      {{2, 64, 56, 56}, {{1}}},
      {{2, 256, 16, 32}, {{1}}},
      {{16, 256, 32, 32}, {{1}}},
      {{2, 257, 9, 5}, {{1}}},
      {{2, 1024, 8, 8}, {{1}}},
      {{2, 1025, 8, 8}, {{1}, {0, 1}}},
      {{1, 2048, 7, 7}, {{1}, {0, 1}}},
      {{3, 4096, 4, 4}, {{1}}},
      {{1, 4100, 2, 8}, {{1}}},
      {{4, 1, 6}, {{1}, {1, 2}, {0}}},
      // The columns are narrow.
      {{2, 300, 6, 6}, {{1}}},
      {{5, 48, 7, 7}, {{1}}},
      {{3, 512, 7, 7}, {{1}}},
      {{2, 64, 31, 33}, {{1}}},
      {{2, 1, 3, 2, 5, 1, 4, 3}, {{0, 2, 4, 6}, {1, 3, 7}, {3}, {5}}},
      // split: few long vectors
      {{1, 64, 56, 56}, {{0, 1, 2, 3}, {1}}},
      {{300007}, {{0}}},
      {{70000, 8}, {{0}}},
      {{70001, 3}, {{0}}},
      {{3, 100, 4, 400}, {{1, 3}, {0, 1, 3}}},
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8}) {
    for (const Layouts& shape : shapes) {
      for (const Axes& axes : shape.axes) add({dtype, Layout::linear, shape.extents}, axes);
    }
    for (const std::int64_t shift : {1, 3}) {
      const std::string what = "_shift" + std::to_string(shift);
      add({dtype, Layout::linear, {9, 64}}, {1}, what).shift = shift;
      add({dtype, Layout::linear, {2, 16384}}, {1}, what).shift = shift;
      add({dtype, Layout::linear, {2, 40, 4, 16}}, {1}, what).shift = shift;
      add({dtype, Layout::linear, {2, 40, 4, 16}}, {0, 2}, what).shift = shift;
    }
  }
  // The cases have so many rows that one block processes several, and columns of tensors so large that a block need not
  // hold them. Both begin between two multiples of a vector.
  add({DType::f32, Layout::linear, {10007, 81}}, {1});
  add({DType::f16, Layout::linear, {60001, 28}}, {1});
  add({DType::bf16, Layout::linear, {10007, 163}}, {1});
  add({DType::f32, Layout::linear, {150, 41, 19, 23}}, {1});
  add({DType::f16, Layout::linear, {3, 900, 45, 49}}, {1});
  add({DType::bf16, Layout::linear, {60, 47, 39, 50}}, {1});
  for (const TypeRow& row : type.type_rows) {
    const auto [dtype, layout] = row.formats[0];
    if (layout != Layout::linear) {
      for (const std::int64_t channels : {1, 7, 8, 9, 31, 32, 33, 64, 100, 256, 520, 2048}) {
        add({dtype, layout, {2, channels, 3, 5}}, {1});
      }
      add({dtype, layout, {0, 8, 3, 5}}, {1});
      add({dtype, layout, {3, 40, 33, 17}}, {-3});
      add({dtype, layout, {2, 40, 4, 16}}, {2}).refused = "does not take";
    }
    for (const char* mode : {"max", "norm", "add"}) {
      for (const float epsilon : {0.F, 1e-12F, 30.F}) {
        const Attributes attributes{{"epsilon", epsilon}, {"epsilon_mode", std::string(mode)}};
        const std::string what = std::string("_") + mode + (epsilon == 0 ? "_eps0" : epsilon > 1 ? "_eps30" : "");
        add({dtype, layout, {2, 40, 4, 16}}, {1}, what, Fill::normal, attributes);
        add({dtype, layout, {2, 40, 4, 16}}, {1}, what + "_zeros", Fill::zeros, attributes).may_overflow =
            epsilon == 0;  // 0 / 0
        add({dtype, layout, {2, 40, 4, 16}}, {1}, what + "_special", Fill::special, attributes);
      }
    }
    add({dtype, layout, {2, 40, 4, 16}}, {1}, "_huge", Fill::huge);
    add({dtype, layout, {2, 40, 4, 16}}, {1}, "_tiny", Fill::tiny);
  }
  add({DType::f32, Layout::linear, {2, 3}}, {2}).refused = "contains 2; each axis must be between -2 and 1 for rank 2";
  add({DType::f32, Layout::linear, {2, 3}}, {-3}).refused =
      "contains -3; each axis must be between -2 and 1 for rank 2";
  add({DType::f32, Layout::linear, {2, 3}}, {1, -1}).refused = "contains axis -1 twice";
  add({DType::i32, Layout::linear, {2, 3}}, {1}).refused = "does not take i32 2x3";
  add({DType::f16, Layout::linear, {32771, 64, 32, 32}}, {1}).large = true;
  add({DType::i8, Layout::linear, {524309, 4099}}, {1}).large = true;
  add({DType::f16, Layout::hwc8, {32771, 60, 32, 32}}, {1}).large = true;
  add({DType::i8, Layout::chw32, {32771, 60, 32, 32}}, {1}).large = true;
  add({DType::f16, Layout::linear, {32771, 16, 64, 64}}, {1, 3}).large = true;
  return cases;
}

[[nodiscard]] inline std::vector<TimedCase> timings(const L2Normalize& /*tag*/) {
  using Axes = std::vector<std::int64_t>;
  const auto timed = [](const Axes& axes, const Extents& extents, double of_copy = 0) {
    return TimedCase{.attributes = {{"axes", axes}, {"epsilon_mode", std::string("norm")}},
                     .inputs = {{.extents = extents}},
                     .of_copy = of_copy};
  };
  const std::vector<TimedCase> shapes{
      timed({1}, {16, 256, 128, 128}, 0.93),
      timed({1}, {65536, 512}, 0.95),
      timed({1}, {1, 64, 56, 56}),
      timed({1}, {1, 128}),
      timed({0, 1, 2, 3}, {1, 64, 56, 56}),
      timed({1}, {16, 64, 256, 256}),
      timed({1}, {64, 1024, 32, 32}),
      timed({1}, {32, 2048, 7, 7}),
      timed({1}, {1048576, 64}),
      timed({1}, {16384, 3000}),
      timed({1}, {512, 65536}),
      timed({1}, {2048, 32768}),
      timed({0, 2, 3}, {16, 256, 64, 64}),
      timed({1, 2, 3}, {16, 256, 128, 128}),
      timed({2}, {1, 2, 2}),  // a network of 3-D boxes: a sine and a cosine for each of two bins of angles
      timed({2}, {64, 2, 2}),
  };
  std::vector<TimedCase> list = in_formats(linear_formats, shapes);
  const std::vector<TimedCase> vectorized =
      in_formats(vector_formats, {timed({1}, {16, 256, 128, 128}, 0.93), timed({1}, {1, 100, 56, 56})});
  list.insert(list.end(), vectorized.begin(), vectorized.end());
  return list;
}

/// Generates random rows, and norms over the channels, over the spatial axes or over both. Norms over the channels may
/// be in hwc8.
[[nodiscard]] inline TimedCase draw(const L2Normalize& /*tag*/, Draw& draw) {
  constexpr SizeRange rows{1, 1 << 20};
  constexpr SizeRange row_length{2, 1 << 16};
  constexpr SizeRange batch{1, 64};
  constexpr SizeRange image{5, 300};
  using Axes = std::vector<std::int64_t>;
  TensorDesc x;
  x.dtype = draw.one_of(drawn_dtypes);
  Axes axes{1};
  if (draw.chance(40)) {
    x.extents = draw.shape([&] { return Extents{draw.size(rows), draw.size(row_length)}; });
  } else {
    x.extents = draw.shape([&] {
      return Extents{draw.size(batch), draw_channels(draw, 2, 2048), draw.size(image), draw.size(image)};
    });
    axes = draw.one_of<Axes>({{1}, {1}, {1}, {2, 3}, {1, 2, 3}, {0, 2, 3}});
    const bool is_channels = axes == Axes{1};
    if (is_channels && x.dtype != DType::f32 && draw.chance(30)) x.layout = Layout::hwc8;
  }
  return {.attributes = {{"axes", axes}, {"epsilon_mode", std::string("norm")}}, .inputs = {x}};
}

}  // namespace graft::ops
