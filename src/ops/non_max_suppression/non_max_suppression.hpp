// NonMaxSuppression: selects, among overlapping boxes, those with the highest scores. Their number depends on the data.
#pragma once

#include <limits>

#include "graft/operator/define_operator.hpp"

namespace graft::ops {

struct NonMaxSuppression {
  static constexpr auto name = "NonMaxSuppression";
  static constexpr int version = 1;
  static constexpr auto doc =
      "For each item and class, boxes are selected in the order of decreasing scores, of equal scores the first box "
      "first, up to max_output_boxes_per_class. A box is skipped if its score is not above score_threshold, or if its "
      "intersection with a selected box is more than iou_threshold of their union.";
  static constexpr auto source = "ONNX NonMaxSuppression 11";
  static constexpr auto why_plugin = "TensorRT-RTX has no layer whose output size depends on data";

  /// The value of score_threshold that selects boxes with any score.
  static constexpr float no_threshold = std::numeric_limits<float>::lowest();

  std::int64_t center_point_box = 0;
  std::int64_t max_output_boxes_per_class = 0;
  float iou_threshold = 0;
  float score_threshold = no_threshold;

  static constexpr auto attributes() {
    using Self = NonMaxSuppression;
    return std::tuple{
        attribute(
            "center_point_box", &Self::center_point_box,
            "the format of boxes: 0 is y1, x1, y2, x2 of two opposite corners; 1 is x, y of the center, width, height",
            {.lowest = 0, .highest = 1}),
        attribute("max_output_boxes_per_class", &Self::max_output_boxes_per_class,
                  "the limit if the input of this name is absent; memory is then reserved for this number of boxes",
                  at_least(0)),
        attribute("iou_threshold", &Self::iou_threshold, "the limit if the input of this name is absent"),
        attribute("score_threshold", &Self::score_threshold,
                  "the threshold if the input of this name is absent; the default, the lowest f32 value, means no "
                  "threshold")};
  }
  static constexpr auto ports() {
    return std::array{
        input("boxes", "T", "N,boxes,4", "the boxes, in the format of center_point_box"),
        input("scores", "T", "N,classes,boxes", "the scores of each class"),
        optional_input("max_output_boxes_per_class", DType::i64, "scalar",
                       "the maximum number of boxes per class; if absent, the attribute of this name"),
        optional_input("iou_threshold", DType::f32, "scalar",
                       "the largest allowed overlap of two selected boxes; if absent, the attribute of this name"),
        optional_input("score_threshold", DType::f32, "scalar",
                       "the score above which boxes are candidates; if absent, the attribute of this name"),
        output("selected_indices", DType::i64, "count,3",
               "the item, class and box of each selected box, sorted by item, class and decreasing score"),
        size_output("count", "the number of results")};
  }
  static constexpr auto types() {
    using enum DType;
    return std::array{TypeConstraint("T", f32, f16)};
  }
  [[nodiscard]] static OnnxForm onnx_form() { return {.name = "NonMaxSuppression", .needs_override = true}; }
  [[nodiscard]] std::vector<Shape> infer_shapes(std::span<const Shape> inputs) const;
  [[nodiscard]] static Status check(const Problem& problem);
  [[nodiscard]] static std::size_t workspace(const Problem& problem);
  [[nodiscard]] static TensorDesc constant(std::size_t port, std::span<const TensorDesc> given);
  void fill_constant(std::size_t port, const TensorDesc& desc, std::byte* bytes) const;
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& inputs) const;
};

[[nodiscard]] Status run(const NonMaxSuppression& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<NonMaxSuppression>> cuda_kernels(const NonMaxSuppression& op);

}  // namespace graft::ops
