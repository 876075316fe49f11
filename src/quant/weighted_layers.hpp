// Convolutions and matrix products with constant weights: which channels each weight connects, and what is added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "onnx/model.hpp"

namespace graft::quant {

/// Weights as ONNX lays them out, seen as a matrix between channels.
struct WeightLayout {
  std::vector<std::int64_t> dims;
  std::int64_t groups = 1;
  bool outputs_first = false;  ///< The first axis is that of the outputs: Conv, and Gemm with transB.

  [[nodiscard]] std::size_t elements() const;
  [[nodiscard]] std::size_t inputs() const;
  [[nodiscard]] std::size_t outputs() const;

  /// Calls `visit(element, input, output)` for each weight and the channels that it connects.
  template <class Visitor>
  void for_each(const Visitor& visit) const;
};

/// A Conv, ConvTranspose, Gemm or MatMul of f32, whose second input is a constant or comes from one of int8 through
/// DequantizeLinear.
struct WeightedLayer {
  onnx::Node* node = nullptr;
  onnx::Node* add = nullptr;  ///< After a MatMul: the Add of one number for each channel, its bias.
  onnx::Value* weights = nullptr;
  onnx::Node* dequantize = nullptr;  ///< Between the weights and the node; null in f32.
  WeightLayout layout;

  [[nodiscard]] onnx::Node& last() const { return add != nullptr ? *add : *node; }
  [[nodiscard]] onnx::Value& output() const { return *last().output(); }  ///< With the bias.
  /// How many axes of the output come after that of the channels.
  [[nodiscard]] std::size_t axes_after_channels() const;
  /// Nothing else reads them.
  [[nodiscard]] bool owns_weights() const;
};

/// Nothing for other nodes. Types and shapes should have been inferred.
[[nodiscard]] std::optional<WeightedLayer> find_weighted_layer(onnx::Node& node);
/// Of the main graph, in order.
[[nodiscard]] std::vector<WeightedLayer> weighted_layers(onnx::Model& model);

/// The only node that reads a value, which is no output of the graph; null where there are others.
[[nodiscard]] onnx::Node* only_reader(const onnx::Value& value);

/// A positive factor of a channel of its input may as well be one of its output. With planes the channels are axis 1,
/// otherwise the last one.
[[nodiscard]] bool lets_factors_through(const onnx::Node& node, bool has_planes);

/// What a constant holds for each channel of a layer's output, where adding or multiplying both would take one number
/// for each, or one for all, and leave the shape.
[[nodiscard]] std::optional<std::vector<double>> numbers_per_channel(const WeightedLayer& layer,
                                                                     const onnx::Value* constant);

/// One number for each channel of the output, zeros where nothing is added; nothing where that is no constant.
[[nodiscard]] std::optional<std::vector<double>> bias_of(const WeightedLayer& layer);
/// The layer's output keeps its name: a MatMul without an Add gets one before it.
void set_bias(WeightedLayer& layer, const std::vector<double>& bias);

/// Puts a constant of f32 in an input's place; the name stays where nothing else reads the old one.
void replace_constant(onnx::Node& node, std::size_t input, const std::vector<std::int64_t>& dims,
                      const std::vector<double>& numbers);

template <class Visitor>
void WeightLayout::for_each(const Visitor& visit) const {
  const auto rows = static_cast<std::size_t>(dims[0]);
  const auto columns = static_cast<std::size_t>(dims[1]);
  const std::size_t taps = elements() / (rows * columns);
  const std::size_t rows_of_group = rows / static_cast<std::size_t>(groups);
  std::size_t element = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t first = row / rows_of_group * columns;
    for (std::size_t column = first; column < first + columns; ++column) {
      const std::size_t input = outputs_first ? column : row;
      const std::size_t output = outputs_first ? row : column;
      for (std::size_t tap = 0; tap < taps; ++tap) visit(element++, input, output);
    }
  }
}

}  // namespace graft::quant
