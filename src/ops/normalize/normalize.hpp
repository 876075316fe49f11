// Normalize: the layer of Caffe's SSD, a division by the Euclidean norm over the channels followed by a learned factor.
#pragma once

#include "graft/operator/define_operator.hpp"
#include "graft/operator/function.hpp"
#include "graft/operator/quantization.hpp"

namespace graft::ops {

/// The operator Normalize. Sums of squares are stored in f32, so they become infinite if |x| exceeds about 1.8e19, as
/// in Caffe.
struct Normalize {
  static constexpr auto name = "Normalize";
  static constexpr int version = 1;
  static constexpr auto doc =
      "y = x / sqrt(sum(x^2) + epsilon) * scale, the sum over the channels of each pixel, or with across_spatial over "
      "all but the first axis; scale is one factor for each channel, or with channel_shared one for all.";
  static constexpr auto source =
      "Liu et al. 2016, SSD: Single Shot MultiBox Detector; NormalizeLayer of its branch of Caffe; Liu et al. 2015, "
      "ParseNet: Looking Wider to See Better";
  static constexpr auto why_plugin =
      "TensorRT would run six layers, most of which read and write the tensor; the plugin reads it once and sums in "
      "f32";

  bool across_spatial = false;
  bool channel_shared = false;
  float epsilon = 1e-10F;
  std::vector<float> weights;
  float x_scale = 1;
  float y_scale = 1;

  static constexpr auto attributes() {
    return std::tuple{
        attribute("across_spatial", &Normalize::across_spatial,
                  "1 computes one norm for each item, 0 one for each pixel"),
        attribute("channel_shared", &Normalize::channel_shared,
                  "1 means one factor for all channels, 0 one for each channel"),
        attribute("epsilon", &Normalize::epsilon, "the value that is added to the sum of squares",
                  {.lowest = 0, .finite = true}),
        attribute("weights", &Normalize::weights, "the factors, if the input scale is absent; if empty, 1"),
        attribute("x_scale", &Normalize::x_scale, x_scale_doc, positive_and_finite()),
        attribute("y_scale", &Normalize::y_scale, y_scale_doc, positive_and_finite())};
  }
  static constexpr auto ports() {
    return std::array{input("x", "T", "N,C,spatial...", "a tensor of rank 2 to 8").scaled_by("x_scale"),
                      optional_input("scale", DType::f32, "C or 1", "the factors; if absent, the attribute weights"),
                      output("y", "T", "as x", "same type as x").scaled_by("y_scale")};
  }
  static constexpr auto types() { return std::array{every_format}; }
  /// Returns false for a channel-vector layout unless the norm is computed over the channels; true for other layouts.
  [[nodiscard]] bool accepts(const TypeRow& row, std::span<const int> /*input_ranks*/) const {
    return !across_spatial || row.formats[0].layout == Layout::linear;
  }
  [[nodiscard]] static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) { return {inputs[0]}; }
  [[nodiscard]] Status check(const Problem& problem) const;
  [[nodiscard]] TensorDesc constant(std::size_t port, std::span<const TensorDesc> given) const;
  void fill_constant(std::size_t port, const TensorDesc& desc, std::byte* bytes) const;
  /// Returns the axes over which the norm of a tensor of this rank is computed.
  [[nodiscard]] std::span<const std::int64_t> axes(int rank) const;
  /// The size in bytes of the sums of vectors that several blocks share. It does not depend on the shape, so that one
  /// workspace serves a whole range of shapes.
  static constexpr std::size_t split_workspace = 65536;
  [[nodiscard]] static std::size_t workspace(const Problem& /*problem*/) { return split_workspace; }
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& inputs) const;
  [[nodiscard]] static std::vector<DropIn> drop_ins();
};

[[nodiscard]] Status run(const Normalize& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<Normalize>> cuda_kernels(const Normalize& op);

}  // namespace graft::ops
