// Cases of NonMaxSuppression: sizes around the size of a tile, limits and thresholds from attributes and from inputs,
// and many equal scores.
#pragma once

#include "ops/non_max_suppression/non_max_suppression.hpp"
#include "ops/operator_case.hpp"

namespace graft::ops {

[[nodiscard]] inline std::vector<OperatorCase> cases(const NonMaxSuppression& /*tag*/) {
  std::vector<OperatorCase> cases;
  const auto add = [&](DType dtype, std::int64_t items, std::int64_t classes, std::int64_t boxes,
                       const Attributes& attributes, const std::string& what, Fill fill = Fill::normal,
                       std::size_t scalars = 0) -> OperatorCase& {
    const TensorDesc scores{.dtype = dtype, .extents = {items, classes, boxes}};
    std::vector<TensorDesc> inputs{{.dtype = dtype, .extents = {items, boxes, 4}}, scores};
    if (scalars > 0) inputs.push_back({.dtype = DType::i64, .extents = {1}});
    if (scalars > 1) inputs.push_back({.dtype = DType::f32, .extents = {1}});
    if (scalars > 2) inputs.push_back({.dtype = DType::f32, .extents = {}});
    return cases.emplace_back(OperatorCase{.name = case_name(scores) + what,
                                           .op = make_operator(operator_type<NonMaxSuppression>(), attributes),
                                           .inputs = inputs,
                                           .fill = fill});
  };
  const auto limits = [](std::int64_t most, float overlap, float score) -> Attributes {
    return {{"max_output_boxes_per_class", most}, {"iou_threshold", overlap}, {"score_threshold", score}};
  };
  constexpr std::int64_t all = 1'000'000;
  constexpr float none = NonMaxSuppression::no_threshold;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const std::int64_t boxes : {0, 1, 2, 63, 64, 65, 129, 1023, 1025, 3000}) {
      add(dtype, 1, 2, boxes, limits(all, 0.5F, none), "");
      add(dtype, 2, 3, boxes, limits(20, 0.3F, 0), "_some");
    }
    add(dtype, 1, 1, 20'000, limits(300, 0.5F, 0.5F), "");
    // The cases have several chunks, limits within a chunk and at its end, and candidates that end within a chunk.
    add(dtype, 2, 1, 5'000, limits(all, 0.5F, 0), "_chunks");
    add(dtype, 1, 2, 5'000, limits(700, 0.9F, none), "_within_a_chunk");
    add(dtype, 1, 1, 4'096, limits(1'024, 1, none), "_end_of_a_chunk");
    add(dtype, 1, 1, 5'000, limits(all, 0.5F, 1), "_inputs", Fill::normal, 1);
    add(dtype, 3, 80, 300, limits(100, 0.45F, 0.25F), "");
    add(dtype, 0, 80, 30, limits(100, 0.45F, 0.25F), "");
    add(dtype, 2, 0, 30, limits(100, 0.45F, 0.25F), "");
    add(dtype, 2, 3, 200, limits(0, 0.5F, none), "_zero");
    add(dtype, 2, 3, 200, limits(1, 0.5F, none), "_one");
    add(dtype, 2, 3, 200, limits(all, 0, none), "_any_overlap");
    add(dtype, 2, 3, 200, limits(all, 1, none), "_no_overlap");
    add(dtype, 2, 3, 200, limits(all, 0.5F, 100), "_no_candidates");
    add(dtype, 2, 3, 200, limits(all, 0.5F, none), "_equal", Fill::sparse);
    add(dtype, 2, 3, 2000, limits(all, 0.1F, none), "_equal", Fill::sparse);
    add(dtype, 2, 3, 200, limits(all, 0.5F, none), "_zeros", Fill::zeros);
    add(dtype, 2, 3, 200, limits(all, 0.5F, none), "_tiny", Fill::tiny);
    Attributes centers = limits(all, 0.2F, none);
    centers.emplace_back("center_point_box", std::int64_t{1});
    add(dtype, 2, 3, 200, centers, "_centers");
    for (const std::size_t scalars : {1U, 2U, 3U}) {
      // With random scalars the thresholds lie outside 0 to 1, which ONNX Runtime refuses. Fill::offset excludes these
      // cases from the tests that run the ONNX function.
      const Fill fill = scalars > 1 ? Fill::offset : Fill::normal;
      add(dtype, 2, 3, 200, {}, "_inputs_" + std::to_string(scalars), fill, scalars);
    }
    add(dtype, 2, 3, 70, limits(all, 0.5F, none), "_shifted").shift = 1;
  }
  const Attributes some = limits(10, 0.5F, 0);
  add(DType::f32, 1, 2, 5, some, "_corners").inputs[0].extents = {1, 5, 5};
  cases.back().refused = "the shapes must be N,boxes,4 and N,classes,boxes";
  add(DType::f32, 1, 2, 5, some, "_count").inputs[0].extents = {1, 6, 4};
  cases.back().refused = "the shapes must be N,boxes,4 and N,classes,boxes";
  add(DType::f32, 1, 2, 5, some, "_rank").inputs[1].extents = {2, 5};
  cases.back().refused = "`scores` has rank 2";
  add(DType::f32, 1, 2, 5, some, "_numbers", Fill::normal, 1).inputs[2].extents = {2};
  cases.back().refused = "it must have one element and at most one axis";
  add(DType::bf16, 1, 2, 5, some, "").refused = "does not take";
  return cases;
}

/// Returns the last stages of detectors: YOLO with all classes and with one, SSD, and the proposals of a Faster R-CNN.
[[nodiscard]] inline std::vector<TimedCase> timings(const NonMaxSuppression& /*tag*/) {
  std::vector<TimedCase> timings;
  const auto add = [&](std::int64_t classes, std::int64_t boxes, std::int64_t most, float overlap, float score) {
    timings.push_back(
        {.attributes = {{"max_output_boxes_per_class", most}, {"iou_threshold", overlap}, {"score_threshold", score}},
         .inputs = {{.dtype = DType::f32, .extents = {1, boxes, 4}},
                    {.dtype = DType::f32, .extents = {1, classes, boxes}}}});
  };
  for (const std::int64_t boxes : {1'000, 8'400, 25'200, 100'000}) add(1, boxes, 300, 0.5F, 0);
  // Exporters of torchvision write the operator without a limit.
  for (const std::int64_t boxes : {1'000, 8'400, 25'200, 100'000}) add(1, boxes, boxes, 0.5F, 0);
  add(80, 8'400, 100, 0.45F, 1);
  add(90, 1'917, 100, 0.6F, 1);
  add(1, 2'000, 1'000, 0.7F, NonMaxSuppression::no_threshold);
  return timings;
}

}  // namespace graft::ops
