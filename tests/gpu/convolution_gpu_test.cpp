// Compares every variant of the int8 convolution bit by bit with integer sums and the f32 steps after them, which this
// test implements independently.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "gpu/device_tensor.hpp"
#include "ops/convolution/convolution.hpp"
#include "ops/operator_case.hpp"

namespace graft {
namespace {

using graft::testing::check_cuda;
using graft::testing::DeviceTensor;
using graft::testing::make_stream;

struct Problem8 {
  std::int64_t batch, channels, outputs, height, width, window, stride, pad, group;

  [[nodiscard]] std::int64_t out(std::int64_t size) const { return (size + 2 * pad - window) / stride + 1; }
};

constexpr float x_scale = 0.0137F;
constexpr float y_scale = 0.71F;
constexpr float alpha = 0.1F;

float scale_of_channel(std::int64_t k) { return 0.003F + 0.0007F * static_cast<float>(k % 11); }

/// Returns the expected element: the exact sum; times the scales, plus bias, in one rounding; leaky ReLU; division;
/// rounding to nearest, ties to even; saturation.
std::int8_t expected_at(const Problem8& p, const std::vector<std::int8_t>& x, const std::vector<std::int8_t>& weight,
                        const std::vector<float>& bias, std::int64_t n, std::int64_t k, std::int64_t row,
                        std::int64_t column) {
  const std::int64_t channels = p.channels / p.group;
  const std::int64_t first = k / (p.outputs / p.group) * channels;
  std::int32_t sum = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t r = 0; r < p.window; ++r) {
      for (std::int64_t s = 0; s < p.window; ++s) {
        const std::int64_t i = row * p.stride - p.pad + r;
        const std::int64_t j = column * p.stride - p.pad + s;
        if (i < 0 || i >= p.height || j < 0 || j >= p.width) continue;
        const auto x_at = static_cast<std::size_t>(((n * p.channels + first + c) * p.height + i) * p.width + j);
        const auto weight_at = static_cast<std::size_t>(((k * channels + c) * p.window + r) * p.window + s);
        sum += std::int32_t{x[x_at]} * std::int32_t{weight[weight_at]};
      }
    }
  }
  float value = std::fmaf(static_cast<float>(sum), x_scale * scale_of_channel(k), bias[static_cast<std::size_t>(k)]);
  if (value < 0) value = alpha * value;
  return static_cast<std::int8_t>(std::clamp(std::nearbyintf(value / y_scale), -128.F, 127.F));
}

/// Returns the index of element (n, c, pixel) in memory.
std::size_t place(const TensorDesc& desc, std::int64_t n, std::int64_t c, std::int64_t pixel) {
  const std::int64_t channels = desc.extents[1];
  const std::int64_t pixels = desc.extents[2] * desc.extents[3];
  if (desc.layout == Layout::linear) return static_cast<std::size_t>((n * channels + c) * pixels + pixel);
  return static_cast<std::size_t>(((n * ((channels + 31) / 32) + c / 32) * pixels + pixel) * 32 + c % 32);
}

std::vector<std::byte> stored(const TensorDesc& desc, const std::vector<std::int8_t>& values) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(desc.storage_bytes()), std::byte{0x55});
  const std::int64_t pixels = desc.extents[2] * desc.extents[3];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t image = at / pixels;
    bytes[place(desc, image / desc.extents[1], image % desc.extents[1], at % pixels)] =
        static_cast<std::byte>(values[i]);
  }
  return bytes;
}

TEST(ConvolutionOnGpu, Int8IsExact) {
  const std::vector<Problem8> problems{{2, 64, 96, 13, 11, 3, 1, 1, 1},  {1, 256, 64, 9, 9, 1, 1, 0, 1},
                                       {1, 40, 33, 12, 10, 3, 2, 1, 1},  {1, 512, 64, 5, 5, 3, 1, 1, 1},
                                       {2, 64, 64, 8, 9, 3, 1, 1, 64},   {1, 128, 64, 7, 7, 3, 1, 1, 2},
                                       {1, 64, 128, 40, 33, 3, 1, 1, 1}, {1, 3, 32, 17, 19, 5, 2, 2, 1}};
  std::mt19937 random(7);
  for (const Problem8& p : problems) {
    std::vector<std::int8_t> x(static_cast<std::size_t>(p.batch * p.channels * p.height * p.width));
    std::vector<std::int8_t> weight(static_cast<std::size_t>(p.outputs * p.channels / p.group * p.window * p.window));
    std::vector<float> bias(static_cast<std::size_t>(p.outputs));
    std::vector<float> scales;
    for (auto& value : x) value = static_cast<std::int8_t>(random());
    for (auto& value : weight) value = static_cast<std::int8_t>(random());
    for (auto& value : bias) value = static_cast<float>(random() % 2001) / 100 - 10;
    for (std::int64_t k = 0; k < p.outputs; ++k) scales.push_back(scale_of_channel(k));
    const auto op =
        ops::make_operator(operator_type<ops::Convolution>(), {{"stride", std::vector<std::int64_t>(2, p.stride)},
                                                               {"pad", std::vector<std::int64_t>(2, p.pad)},
                                                               {"group", p.group},
                                                               {"activation", std::string("leaky_relu")},
                                                               {"alpha", alpha},
                                                               {"x_scale", x_scale},
                                                               {"y_scale", y_scale},
                                                               {"weight_scale", scales}});
    for (const Layout layout : {Layout::linear, Layout::chw32}) {
      const std::vector<TensorDesc> inputs{{DType::i8, layout, {p.batch, p.channels, p.height, p.width}},
                                           {DType::i8, layout, {p.outputs, p.channels / p.group, p.window, p.window}},
                                           {DType::f32, Layout::linear, {p.outputs}}};
      const std::vector<TensorDesc> outputs = ops::output_descs(*op, inputs);
      const Problem problem{inputs, outputs};
      const auto bytes_of = [](const TensorDesc& desc) { return static_cast<std::size_t>(desc.storage_bytes()); };
      const DeviceTensor device_x(bytes_of(inputs[0]));
      const DeviceTensor device_weight(bytes_of(inputs[1]));
      const DeviceTensor device_bias(bytes_of(inputs[2]));
      const DeviceTensor device_y(bytes_of(outputs[0]));
      const DeviceTensor workspace(op->workspace(problem));
      device_x.write(stored(inputs[0], x));
      device_weight.write(stored(inputs[1], weight));
      const auto* bias_bytes = reinterpret_cast<const std::byte*>(bias.data());
      device_bias.write({bias_bytes, bias_bytes + bias.size() * sizeof(float)});
      const std::vector<const void*> from{device_x.data(), device_weight.data(), device_bias.data()};
      void* to = device_y.data();
      const auto stream = make_stream();
      for (const VariantInfo& variant : op->cuda_variants(problem)) {
        if (!variant.fits.ok()) continue;
        SCOPED_TRACE(std::string(variant.name) + " " + to_string(inputs[0]) + " to " + std::to_string(p.outputs));
        device_y.spoil();
        check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        const Status status = op->run_cuda(problem, {from, {&to, 1}, workspace.data()}, {stream.get(), variant.name});
        ASSERT_TRUE(status.ok()) << status.message();
        check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
        const std::vector<std::byte> found = device_y.read();
        int wrong = 0;
        for (std::int64_t n = 0; n < p.batch; ++n) {
          for (std::int64_t k = 0; k < p.outputs; ++k) {
            for (std::int64_t row = 0; row < p.out(p.height); ++row) {
              for (std::int64_t column = 0; column < p.out(p.width); ++column) {
                const std::size_t at = place(outputs[0], n, k, row * p.out(p.width) + column);
                if (static_cast<std::int8_t>(found[at]) != expected_at(p, x, weight, bias, n, k, row, column)) ++wrong;
              }
            }
          }
        }
        EXPECT_EQ(wrong, 0);
      }
    }
  }
}

}  // namespace
}  // namespace graft
