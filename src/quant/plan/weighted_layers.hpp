// Convolutions and matrix products with constant weights: the channels that each weight connects, and the bias.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "onnx/model.hpp"

namespace graft::quant {

/// The meaning of the axes of a weight tensor: which of axis 0 and 1 has input and output channels, and the groups.
struct WeightLayout {
  std::vector<std::int64_t> dims;
  std::int64_t groups = 1;
  /// Whether axis 0 is that of the output channels, as in Conv, and in Gemm with transB; otherwise it is axis 1.
  bool outputs_first = false;

  [[nodiscard]] std::size_t elements() const;
  [[nodiscard]] std::size_t inputs() const;
  [[nodiscard]] std::size_t outputs() const;

  /// Calls `visit(element, input, output)` for each weight, with its row-major index and the indices of the input and
  /// output channel that it connects.
  template <class Visitor>
  void for_each(const Visitor& visit) const;
};

/// A Conv, ConvTranspose, Gemm or MatMul in f32, whose second input is a constant or a dequantized int8 or f8 constant.
struct WeightedLayer {
  onnx::Node* node = nullptr;
  /// The Add after a MatMul that adds one number per channel, its bias; null if the graph has no such node.
  onnx::Node* add = nullptr;
  onnx::Value* weights = nullptr;
  onnx::Node* dequantize = nullptr;  ///< The DequantizeLinear between the weights and the layer; null for f32 weights.
  WeightLayout layout;

  [[nodiscard]] bool is_convolution() const { return !node->is("Gemm") && !node->is("MatMul"); }
  [[nodiscard]] onnx::Node& last() const { return add != nullptr ? *add : *node; }
  /// Returns the layer's output: that of the Add if there is one, otherwise that of the node.
  [[nodiscard]] onnx::Value& output() const { return *last().output(); }
  /// Returns the number of axes of the output that follow the channel axis: 2 for a 2-D convolution, 0 for a MatMul.
  [[nodiscard]] std::size_t axes_after_channels() const;
  /// Returns whether no other node reads the weights.
  [[nodiscard]] bool owns_weights() const;
};

/// Returns the layer that `node` belongs to if the node is a Conv, ConvTranspose, Gemm or MatMul with weights as in
/// WeightedLayer; otherwise nothing. Types and shapes should have been inferred.
[[nodiscard]] std::optional<WeightedLayer> find_weighted_layer(onnx::Node& node);
/// Returns the layers (find_weighted_layer) of all nodes of the main graph, in topological order.
[[nodiscard]] std::vector<WeightedLayer> weighted_layers(onnx::Model& model);

/// Returns the node that reads a value, if the value has exactly one use, in its own graph, and is not an output of the
/// graph; otherwise null.
[[nodiscard]] onnx::Node* only_reader(const onnx::Value& value);

/// Returns whether multiplying a channel of the node's input by a positive factor multiplies the same channel of its
/// output by it. The channel axis is axis 1 if `has_planes`, otherwise the last axis.
[[nodiscard]] bool lets_factors_through(const onnx::Node& node, bool has_planes);

/// Returns the numbers, one per output channel of a layer, that a constant adds to or multiplies the output with. A
/// single number is repeated. Returns nothing if the value is not constant, differs within a channel, or changes the
/// output's shape by broadcasting.
[[nodiscard]] std::optional<std::vector<double>> numbers_per_channel(const WeightedLayer& layer,
                                                                     const onnx::Value* constant);

/// Returns the bias of each output channel: zeros if the layer has no bias. Returns nothing if the bias is not
/// constant.
[[nodiscard]] std::optional<std::vector<double>> bias_of(const WeightedLayer& layer);
/// Sets the bias of a layer to one number per output channel. A MatMul has no bias: the numbers become the constant of
/// the Add after it, which is added if it is missing. The layer's output keeps its name.
void set_bias(WeightedLayer& layer, const std::vector<double>& bias);

/// Replaces input `input` of a node by an f32 constant of shape `dims`. It gets the name of the old constant if no
/// other node reads that one.
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
