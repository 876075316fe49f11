// Cases of DeformableConvolution: windows, groups and offset groups of every relation, with and without bias and mask,
// positions on the image, across its edges and far beyond it.
#pragma once

#include <Eigen/Core>
#include <cmath>

#include "ops/deformable_convolution/deformable_convolution.hpp"
#include "ops/operator_case.hpp"

namespace graft::ops {

/// Replaces every offset with f(offset).
template <class F>
void change_offsets(std::span<HostTensor> inputs, F&& f) {
  HostTensor& offset = inputs[DeformableConvolution::offset];
  const auto change = [&]<class Element>(Element* values) {
    for (std::int64_t i = 0; i < offset.desc.extents.element_count(); ++i) {
      values[i] = static_cast<Element>(f(static_cast<float>(values[i])));
    }
  };
  std::byte* bytes = offset.bytes.data();
  if (offset.desc.dtype == DType::f32) change(reinterpret_cast<float*>(bytes));
  if (offset.desc.dtype == DType::f16) change(reinterpret_cast<Eigen::half*>(bytes));
  if (offset.desc.dtype == DType::bf16) change(reinterpret_cast<Eigen::bfloat16*>(bytes));
}

/// Multiplies the offsets by 8, so that many positions lie beyond the image.
inline void move_far(std::span<HostTensor> inputs) {
  change_offsets(inputs, [](float offset) { return 8 * offset; });
}

/// Rounds the offsets, so that every position is a pixel and three of four weights are 0.
inline void move_to_pixels(std::span<HostTensor> inputs) {
  change_offsets(inputs, [](float offset) { return std::round(offset); });
}

/// The sizes of a problem, from which the shapes of all inputs follow.
struct DeformableProblem {
  Extents x;
  std::int64_t outputs = 1;
  std::int64_t height = 3;
  std::int64_t width = 3;
  std::int64_t group = 1;
  std::int64_t offset_group = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad = 1;
  /// The optional inputs. 0: neither bias nor mask; 1: bias; 2: both; 3: mask, and a bias without elements.
  int optional = 2;

  [[nodiscard]] Attributes attributes() const {
    Attributes attributes{{"group", group},
                          {"offset_group", offset_group},
                          {"strides", std::vector{stride, stride}},
                          {"dilations", std::vector{dilation, dilation}},
                          {"pads", std::vector{pad, pad, pad, pad}}};
    if (optional == 2) attributes.emplace_back("kernel_shape", std::vector{height, width});
    return attributes;
  }
  [[nodiscard]] std::vector<TensorDesc> inputs(DType dtype) const {
    const auto size_of_y = [&](std::int64_t size, std::int64_t window) {
      return (size + 2 * pad - (window - 1) * dilation - 1) / stride + 1;
    };
    const std::int64_t rows = size_of_y(x[2], height);
    const std::int64_t columns = size_of_y(x[3], width);
    const std::int64_t samples = offset_group * height * width;
    const auto desc = [&](const Extents& extents) { return TensorDesc{.dtype = dtype, .extents = extents}; };
    std::vector<TensorDesc> descs{desc(x), desc({outputs, x[1] / group, height, width}),
                                  desc({x[0], 2 * samples, rows, columns})};
    if (optional > 0) descs.push_back(desc({optional == 3 ? 0 : outputs}));
    if (optional > 1) descs.push_back(desc({x[0], samples, rows, columns}));
    return descs;
  }
  [[nodiscard]] std::string name() const {
    const auto text = [](std::int64_t number) { return std::to_string(number); };
    return "_to_" + text(outputs) + "_window_" + text(height) + "x" + text(width) + "_group_" + text(group) + "_" +
           text(offset_group) + "_step_" + text(stride) + "_" + text(dilation) + "_pad_" + text(pad) + "_with_" +
           text(optional);
  }
};

[[nodiscard]] inline std::vector<OperatorCase> cases(const DeformableConvolution& /*tag*/) {
  std::vector<OperatorCase> cases;
  const auto add = [&](DType dtype, const DeformableProblem& problem, const std::string& what = "",
                       Fill fill = Fill::normal) -> OperatorCase& {
    const std::vector<TensorDesc> inputs = problem.inputs(dtype);
    const auto terms =
        static_cast<double>(problem.x[1] / problem.group) * static_cast<double>(problem.height * problem.width);
    // Products are about 1. Each rounds a sample to the type; these random errors add up with the square root of their
    // number. 4 units are eight standard deviations.
    const double unit = dtype == DType::f32 ? 0 : dtype == DType::f16 ? 1. / (1 << 11) : 1. / (1 << 8);
    return cases.emplace_back(
        OperatorCase{.name = case_name(inputs[0]) + problem.name() + what,
                     .op = make_operator(operator_type<DeformableConvolution>(), problem.attributes()),
                     .inputs = inputs,
                     .fill = fill,
                     .tolerance = f32_error(8),
                     .absolute = 4 * f32_error(terms + 8) + 4 * unit * std::sqrt(terms)});
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const int optional : {0, 1, 2, 3}) {
      add(dtype, {.x = {2, 16, 12, 13}, .outputs = 24, .optional = optional});
      add(dtype, {.x = {2, 3, 7, 6}, .outputs = 5, .optional = optional});
    }
    for (const auto& [group, offset_group] :
         {std::pair{1, 4}, {4, 1}, {2, 4}, {4, 2}, {4, 4}, {2, 3}, {3, 4}, {12, 1}}) {
      for (const std::int64_t channels : {12, 96}) {
        add(dtype, {.x = {1, channels, 9, 10}, .outputs = 48, .group = group, .offset_group = offset_group});
      }
    }
    // The counts of channels and filters lie around whole vectors, steps and tiles.
    for (const std::int64_t channels : {8, 9, 15, 17, 63, 64, 65, 130}) {
      add(dtype, {.x = {1, channels, 8, 9}, .outputs = 16});
    }
    for (const std::int64_t outputs : {8, 9, 63, 65, 127, 129, 257}) {
      add(dtype, {.x = {1, 16, 8, 8}, .outputs = outputs});
    }
    // The counts of pixels lie around whole tiles; the last counts are large.
    for (const std::int64_t width : {7, 8, 9, 127, 128, 129}) {
      add(dtype, {.x = {1, 16, 8, width}, .outputs = 16});
    }
    add(dtype, {.x = {2, 32, 50, 132}, .outputs = 256});
    add(dtype, {.x = {2, 32, 50, 131}, .outputs = 250});
    add(dtype, {.x = {1, 24, 97, 90}, .outputs = 128, .offset_group = 3});
    add(dtype, {.x = {1, 24, 97, 91}, .outputs = 124, .group = 2});
    add(dtype, {.x = {1, 16, 120, 110}, .outputs = 64});
    add(dtype, {.x = {9, 16, 7, 7}, .outputs = 33});
    add(dtype, {.x = {1, 128, 20, 19}, .outputs = 64, .group = 2, .offset_group = 2});
    // The following cases vary the window.
    add(dtype, {.x = {2, 20, 9, 8}, .outputs = 12, .height = 1, .width = 1, .pad = 0});
    add(dtype, {.x = {1, 10, 9, 8}, .outputs = 12, .height = 1, .width = 5, .pad = 2});
    add(dtype, {.x = {1, 10, 11, 12}, .outputs = 12, .height = 7, .width = 6, .pad = 3});
    add(dtype, {.x = {1, 10, 11, 12}, .outputs = 12, .stride = 2});
    add(dtype, {.x = {1, 10, 17, 15}, .outputs = 12, .stride = 3, .dilation = 2, .pad = 4});
    add(dtype, {.x = {1, 9, 4, 5}, .outputs = 8, .height = 4, .width = 5, .pad = 0});
    // The following cases vary the positions of the samples.
    add(dtype, {.x = {2, 16, 12, 13}, .outputs = 24}, "_far").arrange = move_far;
    add(dtype, {.x = {2, 5, 12, 13}, .outputs = 3}, "_far").arrange = move_far;
    add(dtype, {.x = {1, 16, 1, 1}, .outputs = 24}, "_far").arrange = move_far;
    add(dtype, {.x = {2, 16, 12, 13}, .outputs = 24}, "_pixels").arrange = move_to_pixels;
    add(dtype, {.x = {2, 16, 12, 13}, .outputs = 24}, "_special", Fill::special);
    add(dtype, {.x = {2, 5, 12, 13}, .outputs = 3}, "_special", Fill::special);
    add(dtype, {.x = {2, 16, 12, 13}, .outputs = 24}, "_special_pixels", Fill::special).arrange = move_to_pixels;
    add(dtype, {.x = {2, 16, 12, 13}, .outputs = 24, .optional = 0}, "_special", Fill::special);
    add(dtype, {.x = {2, 16, 12, 13}, .outputs = 24}, "_zeros", Fill::zeros);
    // The following cases have empty tensors, and addresses that are not multiples of a vector.
    add(dtype, {.x = {0, 16, 12, 13}, .outputs = 24});
    add(dtype, {.x = {2, 16, 0, 13}, .outputs = 24, .pad = 2});
    add(dtype, {.x = {2, 16, 12, 13}, .outputs = 0});
    add(dtype, {.x = {2, 0, 12, 13}, .outputs = 24});
    add(dtype, {.x = {2, 16, 12, 13}, .outputs = 24}, "_shifted").shift = 1;
    add(dtype, {.x = {2, 16, 12, 13}, .outputs = 24}, "_shifted_3").shift = 3;
  }
  const DeformableProblem small{.x = {1, 4, 6, 6}, .outputs = 4};
  const auto refuse = [&](std::size_t port, const Extents& extents, const std::string& message) {
    OperatorCase& test = add(DType::f32, small, "_refused_" + std::to_string(cases.size()));
    test.inputs[port].extents = extents;
    test.refused = message;
  };
  refuse(DeformableConvolution::x, {1, 4, 6}, "`x` has rank 3; the rank must be 4");
  refuse(DeformableConvolution::x, {1, 5, 6, 6}, "weight has shape 4x4x3x3; it must have shape 4x5x3x3");
  refuse(DeformableConvolution::x, {1, 4, 0, 6}, "axis 2 of x has 2 elements with padding, and the window spans 3");
  refuse(DeformableConvolution::offset, {1, 17, 6, 6}, "offset has shape 1x17x6x6; it must have shape 1x18x6x6");
  refuse(DeformableConvolution::bias, {3}, "bias has shape 3; it must have shape 4");
  refuse(DeformableConvolution::mask, {1, 9, 6, 5}, "mask has shape 1x9x6x5; it must have shape 1x9x6x6");
  add(DType::f32, {.x = {1, 4, 6, 6}, .outputs = 3, .group = 2}).refused = "both must be multiples of group, 2";
  add(DType::f32, {.x = {1, 4, 6, 6}, .outputs = 4, .offset_group = 3}).refused =
      "the channels of x also of offset_group, 3";
  add(DType::i32, small).refused = "does not take";
  return cases;
}

/// Returns the sizes of stages of detectors with a ResNet backbone, and of heads that align with offsets.
[[nodiscard]] inline std::vector<TimedCase> timings(const DeformableConvolution& /*tag*/) {
  std::vector<TimedCase> timings;
  for (const DType dtype : {DType::f16, DType::f32}) {
    const auto add = [&](const DeformableProblem& problem) {
      timings.push_back({.attributes = problem.attributes(), .inputs = problem.inputs(dtype), .of_eager = 1.5});
    };
    add({.x = {2, 256, 100, 152}, .outputs = 256});
    add({.x = {2, 256, 100, 152}, .outputs = 256, .offset_group = 4});
    add({.x = {2, 128, 100, 152}, .outputs = 128});
    add({.x = {2, 64, 200, 304}, .outputs = 64});
    add({.x = {2, 256, 50, 76}, .outputs = 256});
    add({.x = {2, 512, 25, 38}, .outputs = 512});
    add({.x = {1, 256, 50, 76}, .outputs = 256, .optional = 0});
  }
  return timings;
}

}  // namespace graft::ops
