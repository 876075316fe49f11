// MultiScaleDeformableAttention: a weighted sum of bilinear samples of feature maps of several sizes for each query.
#pragma once

#include "graft/operator/define_operator.hpp"

namespace graft::ops {

struct MultiScaleDeformableAttention {
  static constexpr auto name = "MultiScaleDeformableAttention";
  static constexpr int version = 1;
  static constexpr auto doc =
      "value holds the pixels of L feature maps, one map after the other and each row by row, in M heads of D "
      "channels. "
      "A query has T points in each head, the first points[0] of them in map 0, the next points[1] in map 1 and so on; "
      "a point is x, y as fractions of the map's width and height. y is the sum over the points of the attention "
      "weight times the bilinear sample at x * width - 0.5, y * height - 0.5. A pixel outside its map or outside value "
      "adds 0, even if its weight is infinite or NaN. Positions and sums are computed in f32.";
  static constexpr auto source =
      "Zhu et al. 2020, Deformable DETR: Deformable Transformers for End-to-End Object Detection";
  static constexpr auto why_plugin =
      "TensorRT would run a GridSample for each map and write every sample to memory; the plugin sums them as it reads "
      "the pixels";

  std::vector<std::int64_t> points;

  /// The largest number of maps: kernels keep the maps in a table of this size.
  static constexpr std::size_t most_levels = 16;
  /// The largest number of points of a query in one map.
  static constexpr std::int64_t most_points = 1 << 15;

  static constexpr auto attributes() {
    return std::tuple{attribute("points", &MultiScaleDeformableAttention::points,
                                "the number of points per query and head in each map; if empty, "
                                "sampling_locations has axes L,P for P points in each of L maps",
                                {.lowest = 1, .highest = most_points})};
  }
  static constexpr auto ports() {
    return std::array{
        input("value", "T", "B,S,M,D", "the pixels of all maps"),
        input("spatial_shapes", "I", "L,2", "the height and width of each map"),
        input("sampling_locations", "T", "B,Q,M,T,2", "the points; T may be split into several axes, such as L,P"),
        input("attention_weights", "T", "B,Q,M,T", "the weights of the points; T is split as in the points"),
        output("y", "T", "B,Q,M,D", "the sum for each query and head")};
  }
  static constexpr auto types() {
    using enum DType;
    return std::array{TypeConstraint("T", f32, f16, bf16), TypeConstraint("I", i64, i32)};
  }
  [[nodiscard]] static std::vector<Shape> infer_shapes(std::span<const Shape> inputs);
  [[nodiscard]] Status check_attributes() const;
  [[nodiscard]] Status check(const Problem& problem) const;
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& inputs) const;
  [[nodiscard]] static std::vector<DropIn> drop_ins();

  /// Returns L, the number of maps.
  [[nodiscard]] std::size_t level_count(const Problem& problem) const;
  /// Returns the number of points of a query in one map.
  [[nodiscard]] std::int64_t points_at(std::size_t level, const Problem& problem) const;
  /// Returns T, the number of points of a query in all maps.
  [[nodiscard]] std::int64_t point_count(const Problem& problem) const;
};

[[nodiscard]] Status run(const MultiScaleDeformableAttention& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<MultiScaleDeformableAttention>> cuda_kernels(
    const MultiScaleDeformableAttention& op);

}  // namespace graft::ops
