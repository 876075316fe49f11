// Cases of CombinedNonMaxSuppression: sizes around those of a tile and of a group of candidates, every limit and
// coding, and many equal scores.
#pragma once

#include "ops/combined_non_max_suppression/combined_non_max_suppression.hpp"
#include "ops/operator_case.hpp"

namespace graft::ops {

[[nodiscard]] inline std::vector<OperatorCase> cases(const CombinedNonMaxSuppression& /*tag*/) {
  std::vector<OperatorCase> cases;
  enum class Boxes : std::uint8_t { shared, shared_with_axis, of_classes };
  const auto add = [&](DType dtype, std::int64_t items, std::int64_t boxes, std::int64_t classes,
                       const Attributes& attributes, const std::string& what, Fill fill = Fill::normal,
                       Boxes kind = Boxes::shared, std::int64_t anchors_of = 0) -> OperatorCase& {
    const TensorDesc scores{.dtype = dtype, .extents = {items, boxes, classes}};
    Extents shape{items, boxes, 4};
    if (kind != Boxes::shared) shape = {items, boxes, kind == Boxes::of_classes ? classes : 1, 4};
    std::vector<TensorDesc> inputs{{.dtype = dtype, .extents = shape}, scores};
    if (anchors_of > 0) inputs.push_back({.dtype = dtype, .extents = {anchors_of, boxes, 4}});
    return cases.emplace_back(OperatorCase{.name = case_name(scores) + what,
                                           .op = make_operator(operator_type<CombinedNonMaxSuppression>(), attributes),
                                           .inputs = inputs,
                                           .fill = fill,
                                           // exp of a GPU differs from that of the CPU in the last bits.
                                           .tolerance = f32_error(16)});
  };
  const auto with = [](const Attributes& more) -> Attributes {
    Attributes all{{"score_threshold", 0.0F}, {"iou_threshold", 0.4F}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Attributes of_classes = with({{"top_k_per_class", 1U}, {"top_k", 30U}, {"empty_class", std::int64_t{-1}}});
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const std::int64_t boxes : {0, 1, 2, 31, 32, 33, 64, 65, 682, 683, 2048}) {
      add(dtype, 2, boxes, 3, with({}), "");
      add(dtype, 1, boxes, 2, of_classes, "_of_classes");
    }
    add(dtype, 1, 1025, 2, with({{"top_k", 0U}, {"max_output_boxes", 3000U}}), "_all");
    add(dtype, 1, 8400, 80, {{"score_threshold", 2.5F}}, "_yolo");
    add(dtype, 3, 300, 80, with({{"max_output_boxes", 300U}, {"top_k", 1000U}}), "_many_classes");
    add(dtype, 0, 300, 80, with({}), "");
    add(dtype, 2, 300, 0, with({}), "");
    add(dtype, 3, 65, 4, with({{"max_output_boxes", 1U}}), "_one");
    add(dtype, 3, 65, 4, with({{"max_output_boxes", 500U}}), "_more_places_than_scores");
    add(dtype, 3, 65, 4, with({{"top_k", 7U}}), "_top_7");
    // So many scores that a histogram finds the best ones; the limit lies within a bin, and all scores are in one bin.
    add(dtype, 2, 3000, 4, with({{"top_k", 1500U}}), "_top_1500");
    add(dtype, 2, 3000, 4, {{"score_threshold", -10.0F}, {"top_k", 5000U}}, "_top_5000_of_any_sign");
    add(dtype, 2, 3000, 4, with({{"top_k", 1500U}}), "_equal_scores", Fill::zeros);
    add(dtype, 2, 3000, 4, with({{"top_k", 1500U}}), "_few_candidates", Fill::sparse);
    add(dtype, 3, 65, 4, with({{"top_k", 7U}, {"top_k_per_class", 1U}}), "_top_7_of_classes");
    add(dtype, 3, 65, 4, with({{"background_class", 0U}}), "_background");
    add(dtype, 3, 65, 4, with({{"background_class", 3U}, {"top_k_per_class", 1U}}), "_background_of_classes");
    add(dtype, 3, 65, 4, with({{"class_agnostic", 1U}}), "_agnostic");
    add(dtype, 3, 65, 4, with({{"max_output_boxes_per_class", 2U}}), "_two_of_each_class");
    add(dtype, 3, 65, 4, with({{"max_output_boxes_per_class", 2U}, {"pad_per_class", 1U}}), "_padded_per_class");
    add(dtype, 3, 65, 4, with({{"clip_boxes", 1U}}), "_clipped");
    add(dtype, 3, 65, 4, with({{"pixel_boxes", 1U}}), "_pixels");
    add(dtype, 3, 65, 4, with({{"box_coding", 1U}}), "_centers");
    add(dtype, 3, 65, 4, {{"score_activation", 1U}, {"score_threshold", 0.6F}}, "_logits");
    add(dtype, 3, 65, 4, {{"score_activation", 1U}, {"score_threshold", 0.0F}}, "_all_logits");
    add(dtype, 3, 65, 4, {{"score_activation", 1U}, {"score_threshold", 2.0F}}, "_no_logits");
    add(dtype, 3, 65, 4, {{"score_threshold", 0.0F}, {"iou_threshold", 0.0F}}, "_any_overlap");
    add(dtype, 3, 65, 4, {{"score_threshold", 0.0F}, {"iou_threshold", 1.0F}}, "_no_overlap");
    for (const Fill fill : {Fill::sparse, Fill::zeros, Fill::tiny, Fill::special}) {
      const std::string what = "_fill_" + std::to_string(static_cast<int>(fill));
      add(dtype, 3, 200, 4, with({}), what, fill);
      add(dtype, 3, 200, 4, of_classes, what + "_of_classes", fill);
    }
    for (const Boxes kind : {Boxes::shared_with_axis, Boxes::of_classes}) {
      const std::string what = kind == Boxes::of_classes ? "_own_boxes" : "_shared_axis";
      add(dtype, 2, 65, 3, with({}), what, Fill::normal, kind);
      add(dtype, 2, 65, 3, of_classes, what + "_of_classes", Fill::normal, kind);
    }
    for (const std::int64_t anchors_of : {1, 2}) {
      const std::string what = "_anchors_of_" + std::to_string(anchors_of);
      // A decoded coordinate is the difference of a center and half a size, and these terms are not larger than 30
      // here.
      const double absolute = 30 * f32_error(4);
      add(dtype, 2, 65, 3, with({}), what, Fill::normal, Boxes::shared, anchors_of).absolute = absolute;
      add(dtype, 2, 65, 3, with({{"box_coding", 1U}}), what + "_centers", Fill::normal, Boxes::of_classes, anchors_of)
          .absolute = absolute;
    }
    add(dtype, 2, 65, 3, with({}), "_scores_with_axis").inputs[1].extents = {2, 65, 3, 1};
    add(dtype, 2, 65, 3, with({}), "_shifted").shift = 1;
  }
  for (OperatorCase& each : cases) each.may_overflow = each.fill == Fill::special;
  const auto refuse = [&](const std::string& what, std::size_t input, const Extents& shape, const char* message) {
    OperatorCase& refused = add(DType::f32, 2, 5, 3, {}, what, Fill::normal, Boxes::shared, input == 2 ? 1 : 0);
    refused.inputs[input].extents = shape;
    refused.refused = message;
  };
  refuse("_corners", 0, {2, 5, 5}, "the shapes must be N,boxes,4 or N,boxes,classes,4, and N,boxes,classes");
  refuse("_count", 0, {2, 6, 4}, "the shapes must be N,boxes,4 or N,boxes,classes,4, and N,boxes,classes");
  refuse("_classes", 0, {2, 5, 2, 4}, "the shapes must be N,boxes,4 or N,boxes,classes,4, and N,boxes,classes");
  refuse("_last_axis", 1, {2, 5, 3, 2}, "the shapes must be N,boxes,4 or N,boxes,classes,4, and N,boxes,classes");
  refuse("_rank", 1, {2, 15}, "`scores` has rank 2");
  refuse("_anchors", 2, {3, 5, 4}, "anchors must have the shape 1,boxes,4 or N,boxes,4");
  refuse("_anchor_rank", 2, {5, 4}, "`anchors` has rank 2");
  add(DType::bf16, 1, 5, 2, {}, "").refused = "does not take";
  return cases;
}

/// Returns the last stages of detectors: YOLO with all classes, with one and with logits, and SSD.
[[nodiscard]] inline std::vector<TimedCase> timings(const CombinedNonMaxSuppression& /*tag*/) {
  std::vector<TimedCase> timings;
  const auto add = [&](std::int64_t boxes, std::int64_t classes, const Attributes& attributes) {
    timings.push_back({.attributes = attributes,
                       .inputs = {{.dtype = DType::f32, .extents = {1, boxes, 4}},
                                  {.dtype = DType::f32, .extents = {1, boxes, classes}}}});
  };
  // The scores are normally distributed: 2 in 100 are above 2, and half of them above 0.
  for (const std::int64_t boxes : {1'000, 8'400, 25'200, 100'000}) {
    add(boxes, 1, {{"score_threshold", 0.0F}, {"max_output_boxes", 300U}});
  }
  for (const float threshold : {3.0F, 2.0F, 0.0F}) {
    add(8'400, 80, {{"score_threshold", threshold}, {"iou_threshold", 0.45F}});
  }
  add(1'917, 90, {{"score_threshold", 1.0F}, {"iou_threshold", 0.6F}, {"top_k", 100U}, {"top_k_per_class", 1U}});
  return timings;
}

}  // namespace graft::ops
