// Cases of Convolution.
#pragma once

#include <cmath>

#include "ops/convolution/convolution.hpp"
#include "ops/operator_case.hpp"
#include "ops/random_cases.hpp"

namespace graft::ops {

/// The sizes of one convolution, for tests and for timing.
struct ConvolutionSizes {
  Extents x;
  std::int64_t outputs;
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> pad;
  std::vector<std::int64_t> dilation;
  std::int64_t group = 1;

  /// Returns the number of products in one sum.
  [[nodiscard]] std::int64_t terms() const {
    std::int64_t count = x[1] / group;
    for (const std::int64_t size : kernel) count *= size;
    return count;
  }
  [[nodiscard]] std::string name() const {
    std::string text = "_to" + std::to_string(outputs) + "_k";
    for (const std::int64_t size : kernel) text += std::to_string(size);
    const auto add = [&](const char* label, const std::vector<std::int64_t>& list) {
      if (!list.empty()) text += label;
      for (const std::int64_t number : list) text += std::to_string(number);
    };
    add("_s", stride);
    add("_p", pad);
    add("_d", dilation);
    return group == 1 ? text : text + "_g" + std::to_string(group);
  }
  [[nodiscard]] Attributes attributes() const {
    Attributes list{{"kernel", kernel}, {"stride", stride}, {"pad", pad}, {"dilation", dilation}, {"group", group}};
    // With the scales below, i8 results use a large part of the i8 range.
    const auto spread = static_cast<float>(std::sqrt(static_cast<double>(terms())) * 74 * 74 * 0.05 * 0.01);
    list.insert(list.end(), {{"x_scale", 0.05F}, {"y_scale", spread / 40}});
    return list;
  }
};

/// Returns the tolerated error of a sum in f32 of `terms` products with values about 1. Partial sums are then about
/// sqrt(terms), and each addition may cut off 2^-23 of one, as tensor cores do.
[[nodiscard]] inline double sum_error(std::int64_t terms) {
  return std::pow(static_cast<double>(terms), 1.5) / (1 << 23);
}

/// Returns the allowed error of a sum in TF32, which truncates or rounds each number to 10 bits of fraction: 8 standard
/// deviations of the error.
[[nodiscard]] inline double tf32_error(std::int64_t terms) { return std::sqrt(static_cast<double>(terms)) / (1 << 7); }

/// Returns a case whose x, weight and bias are inputs.
[[nodiscard]] inline OperatorCase convolution_case(DType dtype, Layout layout, const ConvolutionSizes& sizes,
                                                   const Attributes& more = {{"weight_scale", std::vector{0.01F}}},
                                                   const std::string& what = "", Fill fill = Fill::normal) {
  const OperatorType& type = operator_type<Convolution>();
  Attributes attributes = sizes.attributes();
  attributes.insert(attributes.end(), more.begin(), more.end());
  const TensorDesc x{dtype, layout, sizes.x};
  TensorDesc weight{dtype, layout, {sizes.outputs, sizes.x[1] / sizes.group}};
  for (const std::int64_t size : sizes.kernel) weight.extents.push_back(size);
  // A sum of i8 is exact. It is then rounded to f32 and scaled, and the bias is added.
  const double spread = 74 * 74 * 0.05 * 0.01;
  const double absolute = dtype == DType::i8 ? spread * std::sqrt(static_cast<double>(sizes.terms())) * f32_error(8)
                                             : sum_error(sizes.terms());
  return OperatorCase{.name = case_name(x) + sizes.name() + what,
                      .op = make_operator(type, attributes),
                      .inputs = {x, weight, {DType::f32, Layout::linear, {sizes.outputs}}},
                      .fill = fill,
                      .tolerance = f32_error(8),
                      .absolute = absolute};
}

[[nodiscard]] inline std::vector<OperatorCase> cases(const Convolution& /*tag*/) {
  const OperatorType& type = operator_type<Convolution>();
  std::vector<OperatorCase> cases;
  const ConvolutionSizes usual{
      .x = {2, 64, 14, 14}, .outputs = 64, .kernel = {3, 3}, .stride = {}, .pad = {1, 1}, .dilation = {}};
  const std::vector<ConvolutionSizes> images{
      usual,
      {{2, 64, 7, 9}, 32, {1, 1}, {}, {}, {}},
      {{1, 64, 31, 33}, 128, {1, 1}, {}, {}, {}},
      {{1, 128, 8, 8}, 256, {1, 1}, {2, 2}, {}, {}},
      {{1, 32, 15, 17}, 40, {3, 3}, {2, 2}, {1, 1}, {}},
      {{1, 3, 23, 21}, 16, {7, 7}, {2, 2}, {3, 3}, {}},
      {{1, 16, 12, 13}, 24, {3, 3}, {}, {2, 2}, {2, 2}},
      {{1, 8, 9, 7}, 9, {3, 3}, {1, 2}, {0, 1, 2, 0}, {}},
      {{2, 13, 5, 6}, 7, {2, 3}, {}, {1, 0}, {1, 2}},
      {{1, 33, 6, 5}, 65, {3, 3}, {}, {1, 1}, {}},
      {{1, 1, 4, 4}, 1, {1, 1}, {}, {}, {}},
      {{1, 512, 4, 4}, 64, {3, 3}, {}, {1, 1}, {}},
      {{1, 160, 9, 9}, 96, {3, 3}, {}, {1, 1}, {}},
      {{2, 32, 8, 8}, 64, {3, 3}, {}, {1, 1}, {}, 4},
      {{1, 128, 6, 6}, 64, {3, 3}, {}, {1, 1}, {}, 2},
      {{1, 10, 6, 6}, 6, {3, 3}, {}, {1, 1}, {}, 2},
      {{2, 32, 14, 14}, 32, {3, 3}, {}, {1, 1}, {}, 32},
      {{2, 40, 15, 13}, 40, {3, 3}, {2, 2}, {1, 1}, {}, 40},
      {{1, 24, 17, 40}, 24, {5, 5}, {}, {2, 2}, {}, 24},
      {{3, 44, 21, 30}, 44, {1, 1}, {}, {}, {}, 44},
      {{1, 12, 9, 9}, 24, {3, 3}, {}, {2, 2}, {2, 2}, 12},
      {{0, 8, 5, 5}, 8, {3, 3}, {}, {1, 1}, {}},
      {{1, 40, 20, 19}, 3, {9, 9}, {}, {4, 4}, {}},
      {{2, 24, 23, 37}, 5, {3, 4}, {2, 1}, {1, 2}, {1, 2}},
      {{1, 12, 6, 5}, 8, {3, 3}, {}, {1, 1}, {}},
      {{1, 3, 20, 19}, 70, {9, 9}, {}, {4, 4}, {}},
  };
  const std::vector<ConvolutionSizes> others{
      {{2, 16, 33}, 8, {5}, {}, {2}, {}},
      {{1, 1, 7}, 1, {1}, {}, {}, {}},
      {{3, 24, 50}, 24, {3}, {2}, {0, 1}, {2}, 24},
      {{1, 8, 5, 6, 7}, 12, {3, 3, 3}, {}, {1, 1, 1}, {}},
      {{2, 6, 5, 9, 8}, 9, {1, 3, 2}, {2, 1, 3}, {0, 1, 0, 0, 2, 1}, {1, 2, 1}, 3},
  };
  for (const TypeRow& row : type.type_rows) {
    const DType dtype = row.formats[0].dtype;
    const Layout layout = row.formats[0].layout;
    const bool in_tf32 = dtype == DType::f32 && layout != Layout::linear;
    const auto add = [&](const ConvolutionSizes& sizes, Attributes more, const std::string& what,
                         Fill fill = Fill::normal) -> OperatorCase& {
      if (in_tf32) more.emplace_back("allow_tf32", std::int64_t{1});
      OperatorCase& added = cases.emplace_back(convolution_case(dtype, layout, sizes, more, what, fill));
      if (in_tf32) added.absolute = tf32_error(sizes.terms());
      return added;
    };
    const std::vector<float> steps{0.01F};
    const Attributes plain{{"weight_scale", steps}};
    for (const ConvolutionSizes& sizes : images) add(sizes, plain, "");
    if (layout == Layout::linear) {
      for (const ConvolutionSizes& sizes : others) add(sizes, plain, "");
      add(images[4], plain, "_shift1").shift = 1;
      add(images[16], plain, "_shift3").shift = 3;
    }
    for (const char* activation : {"relu", "relu6", "leaky_relu"}) {
      for (const std::size_t which : {std::size_t{4}, std::size_t{17}}) {
        add(images[which], {{"weight_scale", steps}, {"activation", std::string(activation)}, {"alpha", 0.3F}},
            std::string("_") + activation);
      }
    }
    std::vector<float> by_channel;
    for (int k = 0; k < 40; ++k) by_channel.push_back(steps[0] * (0.25F + 0.05F * static_cast<float>(k)));
    add(images[4], {{"weight_scale", by_channel}}, "_by_channel");
    add(images[17], {{"weight_scale", by_channel}}, "_by_channel");
    add(images[1], plain, "_zeros", Fill::zeros);
    add(images[1], plain, "_tiny", Fill::tiny);
    if (dtype == DType::f16) add(images[1], plain, "_huge", Fill::huge).absolute *= 65504. * 65504;
    add({{1, 2, 9, 9}, 16, {1, 1}, {}, {1, 1}, {}}, plain, "_special", Fill::special);
    if (dtype == DType::f32 && !in_tf32) {
      const ConvolutionSizes wide{{1, 16, 96, 180}, 100, {3, 3}, {}, {1, 1}, {}};
      for (const ConvolutionSizes& sizes :
           {usual, wide, images[5], images[7], images[9], images[21], images[22], images[23], images[24]}) {
        add(sizes, {{"allow_tf32", std::int64_t{1}}, {"activation", std::string("leaky_relu")}}, "_tf32").absolute =
            tf32_error(sizes.terms());
      }
    }

    // The weights are multiples of 1/64, so that i8 represents them exactly.
    for (const ConvolutionSizes& sizes : {images[4], images[13], images[17]}) {
      std::vector<float> weights;
      const std::int64_t count = sizes.terms() * sizes.outputs;
      for (std::int64_t i = 0; i < count; ++i) weights.push_back(static_cast<float>(i * 37 % 201 - 100) / 64);
      std::vector<float> offsets;
      for (std::int64_t i = 0; i < sizes.outputs; ++i) offsets.push_back(static_cast<float>(i % 7) / 4 - 1);
      const Attributes attributes{{"num_output", sizes.outputs},
                                  {"kernel_weights", weights},
                                  {"bias_weights", offsets},
                                  {"weight_scale", std::vector{1.F / 64}}};
      add(sizes, attributes, "_from_attributes").inputs.resize(1);
      add(sizes, attributes, "_bias_from_attributes").inputs.resize(2);
    }
  }

  const auto refuse = [&](const ConvolutionSizes& sizes, const Attributes& more, const std::string& message) {
    OperatorCase& added = cases.emplace_back(
        convolution_case(DType::f32, Layout::linear, sizes, more, "_refused" + std::to_string(cases.size())));
    added.refused = message;
    return &added;
  };
  refuse({{1, 8, 2, 6}, 8, {3, 3}, {}, {}, {}}, {}, "spatial axis 0 of x has 2 elements with padding");
  refuse({{1, 8, 5, 6}, 8, {3, 3}, {}, {}, {}}, {{"num_output", std::int64_t{9}}}, "weight has shape 8x8x3x3");
  refuse({{1, 8, 5, 6}, 8, {3, 3}, {}, {}, {}}, {{"weight_scale", std::vector{1.F, 2.F}}}, "`weight_scale` has 2");
  refuse(usual, {}, "weight has shape 64x32x3x3")->inputs[1].extents[1] = 32;
  refuse(usual, {}, "bias has shape 63")->inputs[2].extents[0] = 63;
  refuse({{1, 9, 5, 6}, 8, {3, 3}, {}, {}, {}, 2}, {}, "both must be multiples of group, 2");
  refuse(usual, {{"num_output", std::int64_t{64}}, {"kernel_weights", std::vector{1.F}}}, "`kernel_weights` has 1")
      ->inputs.resize(1);
  refuse(usual, {{"num_output", std::int64_t{64}}}, "it has no weights")->inputs.resize(1);
  refuse(usual, {}, "does not take i32")->inputs[0].dtype = DType::i32;

  const auto add_large = [&](DType dtype, Layout layout, const ConvolutionSizes& sizes) {
    // Every weight is 1/64, a power of two, which every type represents exactly.
    const std::vector<float> weights(static_cast<std::size_t>(sizes.terms() * sizes.outputs), 1.F / 64);
    OperatorCase& added = cases.emplace_back(convolution_case(
        dtype, layout, sizes,
        {{"num_output", sizes.outputs}, {"kernel_weights", weights}, {"weight_scale", std::vector{1.F / 64}}},
        "_large"));
    added.inputs.resize(1);
    added.large = true;
  };
  add_large(DType::f16, Layout::hwc8, {{32771, 64, 32, 32}, 8, {3, 3}, {}, {1, 1}, {}});
  add_large(DType::f16, Layout::linear, {{32771, 64, 32, 32}, 64, {3, 3}, {}, {1, 1}, {}, 64});
  add_large(DType::i8, Layout::chw32, {{32771, 64, 33, 32}, 32, {1, 1}, {}, {}, {}});
  return cases;
}

/// Returns a timed convolution of square images and windows, padded so that y has the size of x. It has no bias,
/// because PyTorch would run a separate kernel for a bias, and the time is compared with that of cuDNN's convolution
/// alone.
[[nodiscard]] inline TimedCase timed_convolution(const Format& format, std::int64_t batch, std::int64_t channels,
                                                 std::int64_t outputs, std::int64_t size, std::int64_t window,
                                                 std::int64_t group = 1) {
  const auto [dtype, layout] = format;
  TimedCase timed{.inputs = {{dtype, layout, {batch, channels, size, size}},
                             {dtype, layout, {outputs, channels / group, window, window}}}};
  if (window > 1) timed.attributes.emplace_back("pad", std::vector<std::int64_t>(2, window / 2));
  if (group > 1) timed.attributes.emplace_back("group", group);
  if (dtype == DType::i8) {
    timed.attributes.insert(timed.attributes.end(), {{"x_scale", 0.05F}, {"weight_scale", std::vector{0.01F}}});
  }
  if (dtype == DType::f16 || dtype == DType::bf16) timed.of_eager = 0.9;
  timed.operations = 2. * static_cast<double>(batch * outputs * size * size * (channels / group) * window * window);
  return timed;
}

/// Returns the 3x3 and 1x1 convolutions of ResNet-50 and the convolutions of VGG-16, in f16 and i8; and one size in the
/// other formats, in TF32, depthwise, and with bias and relu.
[[nodiscard]] inline std::vector<TimedCase> timings(const Convolution& /*tag*/) {
  struct Layer {
    std::int64_t channels, outputs, size, window;
  };
  const std::vector<Layer> layers{
      {64, 64, 56, 3},   {128, 128, 28, 3}, {256, 256, 14, 3},  {512, 512, 7, 3},   {64, 256, 56, 1},
      {256, 64, 56, 1},  {512, 128, 28, 1}, {1024, 256, 14, 1}, {256, 1024, 14, 1}, {512, 2048, 7, 1},
      {3, 64, 224, 3},   {64, 64, 224, 3},  {64, 128, 112, 3},  {128, 128, 112, 3}, {128, 256, 56, 3},
      {256, 256, 56, 3}, {256, 512, 28, 3}, {512, 512, 28, 3},  {512, 512, 14, 3},
  };
  const Format f16(DType::f16, Layout::hwc8);
  const Format i8(DType::i8, Layout::chw32);
  std::vector<TimedCase> list;
  for (const Format& format : {f16, i8}) {
    for (const std::int64_t batch : {8, 1, 32}) {
      for (const auto& [channels, outputs, size, window] : layers) {
        list.push_back(timed_convolution(format, batch, channels, outputs, size, window));
      }
    }
  }
  for (const Format& format :
       {Format(DType::bf16, Layout::hwc8), Format(DType::f16), Format(DType::i8), Format(DType::f32)}) {
    list.push_back(timed_convolution(format, 8, 256, 256, 56, 3));
  }
  list.push_back(list.back());
  list.back().attributes.emplace_back("allow_tf32", std::int64_t{1});
  for (const Format& format : {f16, i8}) list.push_back(timed_convolution(format, 8, 256, 256, 56, 3, 256));
  list.push_back(timed_convolution(f16, 8, 256, 256, 56, 3));
  list.back().inputs.push_back({.extents = {256}});
  list.back().attributes.emplace_back("activation", std::string("relu"));
  return list;
}

/// Generates a random convolution of images in f16 and hwc8: nine of ten convolutions are dense, the other depthwise.
/// It has no bias, for which PyTorch would run a separate kernel.
[[nodiscard]] inline TimedCase draw(const Convolution& /*tag*/, Draw& draw) {
  constexpr SizeRange batch{1, 32};
  constexpr SizeRange image{7, 160};
  constexpr SizeRange operations{100'000'000, 100'000'000'000};
  const bool is_depthwise = draw.chance(10);
  const Format format(DType::f16, Layout::hwc8);
  while (true) {
    const std::int64_t channels = draw_channels(draw, 16, 512);
    const std::int64_t outputs = is_depthwise ? channels : draw_channels(draw, 16, 512);
    const std::int64_t window = draw.one_of({1, 3, 3, 3, 5, 7});
    const std::int64_t stride = draw.one_of({1, 1, 1, 2});
    const std::int64_t dilation = window > 1 && draw.chance(10) ? 2 : 1;
    const std::int64_t pad = draw.chance(80) ? window / 2 * dilation : 0;
    const Extents x{draw.size(batch), channels, draw.size(image), draw.size(image)};
    std::int64_t pixels = x[0];
    for (const int axis : {2, 3}) {
      const std::int64_t room = x[axis] + 2 * pad - (window - 1) * dilation - 1;
      pixels *= room < 0 ? 0 : room / stride + 1;
    }
    const std::int64_t group = is_depthwise ? channels : 1;
    const std::int64_t products = pixels * outputs * (channels / group) * window * window;
    if (!drawn_elements.has(x.element_count()) || pixels * outputs > drawn_elements.most || pixels == 0) continue;
    if (!is_depthwise && !operations.has(2 * products)) continue;
    using Pair = std::vector<std::int64_t>;
    return {.attributes = {{"pad", Pair{pad, pad}},
                           {"stride", Pair{stride, stride}},
                           {"dilation", Pair{dilation, dilation}},
                           {"group", group}},
            .inputs = {{format.dtype, format.layout, x},
                       {format.dtype, format.layout, {outputs, channels / group, window, window}}},
            .of_eager = 0.9,
            .operations = 2. * static_cast<double>(products)};
  }
}

}  // namespace graft::ops
