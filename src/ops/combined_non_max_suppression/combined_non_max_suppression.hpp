// CombinedNonMaxSuppression: the last stage of a detector, from boxes and scores of classes to the best detections.
#pragma once

#include "graft/operator/define_operator.hpp"

namespace graft::ops {

struct CombinedNonMaxSuppression {
  static constexpr auto name = "CombinedNonMaxSuppression";
  static constexpr int version = 1;
  static constexpr auto doc =
      "The detections with the highest scores among the boxes and classes of each item, without those that overlap a "
      "better detection. A candidate is a class of a box with a score of at least score_threshold. Candidates of an "
      "item "
      "are visited in the order of decreasing scores, and become detections. A candidate is skipped if its "
      "intersection with a "
      "detection of the same class is more than iou_threshold of their union; with class_agnostic, with any detection. "
      "Only the top_k candidates with the highest scores are visited. Of equal scores, the first box comes first, and "
      "then its first class; with top_k_per_class, the first class, and then its first box. The item ends after "
      "max_output_boxes detections; the places after the last detection are 0. A NaN is not a candidate.";
  static constexpr auto source =
      "TensorFlow CombinedNonMaxSuppression; NVIDIA's descriptions of EfficientNMS_TRT and BatchedNMS_TRT";
  static constexpr auto why_plugin = "TensorRT-RTX has no layer that suppresses boxes";

  enum Inputs : std::uint8_t { boxes, scores, anchors };
  enum Outputs : std::uint8_t {
    num_detections,
    detection_boxes,
    detection_scores,
    detection_classes,
    detection_indices
  };

  float score_threshold = 0.5F;
  float iou_threshold = 0.5F;
  std::int64_t max_output_boxes = 100;
  std::int64_t max_output_boxes_per_class = -1;
  bool pad_per_class = false;
  std::int64_t top_k = 4096;
  bool top_k_per_class = false;
  std::int64_t background_class = -1;
  bool class_agnostic = false;
  bool score_activation = false;
  std::int64_t box_coding = 0;
  bool pixel_boxes = false;
  bool clip_boxes = false;
  std::int64_t empty_class = 0;

  static constexpr auto attributes() {
    using Self = CombinedNonMaxSuppression;
    constexpr std::int64_t most = 0x7FFFFFFF;  // The kernels count boxes in 32 bits.
    constexpr Range limit{.lowest = -1, .highest = most};
    return std::tuple{
        attribute("score_threshold", &Self::score_threshold, "the lowest score of a candidate"),
        attribute("iou_threshold", &Self::iou_threshold, "the largest allowed overlap of two detections of a class"),
        attribute("max_output_boxes", &Self::max_output_boxes, "the maximum number of detections of an item",
                  {.lowest = 1, .highest = most}),
        attribute("max_output_boxes_per_class", &Self::max_output_boxes_per_class,
                  "the maximum number of detections of a class; without a limit if it is -1 or 0", limit),
        attribute("pad_per_class", &Self::pad_per_class,
                  "1 reduces max_output_boxes to the product of max_output_boxes_per_class and the number of classes, "
                  "if the product is smaller"),
        attribute("top_k", &Self::top_k,
                  "the maximum number of candidates that are visited; without a limit if it is -1 or 0", limit),
        attribute("top_k_per_class", &Self::top_k_per_class,
                  "0 means that top_k limits the candidates of an item, 1 that it limits those of each class"),
        attribute("background_class", &Self::background_class, "the class that is ignored; -1 if there is none", limit),
        attribute("class_agnostic", &Self::class_agnostic, "1 compares the boxes of all classes with each other"),
        attribute("score_activation", &Self::score_activation,
                  "1 means that scores are logits: a score is 1 / (1 + exp(-x)) of its input"),
        attribute("box_coding", &Self::box_coding,
                  "the format of boxes and anchors: 0 is x1, y1, x2, y2 of two opposite corners; 1 is x, y of the "
                  "center, width, height. Both axes may be exchanged",
                  {.lowest = 0, .highest = 1}),
        attribute("pixel_boxes", &Self::pixel_boxes,
                  "1 means that boxes include the pixels of both corners, so a width is x2 - x1 + 1"),
        attribute("clip_boxes", &Self::clip_boxes, "1 clips the coordinates of detections to the range from 0 to 1"),
        attribute("empty_class", &Self::empty_class,
                  "the class and the index in the places after the last detection: 0 or -1",
                  {.lowest = -1, .highest = 0})};
  }
  static constexpr auto ports() {
    return std::array{
        input("boxes", "T", "N,boxes,4 or N,boxes,classes,4",
              "the boxes in the format of box_coding, for all classes (also N,boxes,1,4) or for each class; with "
              "anchors, their encoded offsets"),
        input("scores", "T", "N,boxes,classes", "the scores of each class of each box (also N,boxes,classes,1)"),
        optional_input("anchors", "T", "N,boxes,4 or 1,boxes,4",
                       "boxes that `boxes` refines. Corners are sums of both inputs, each with its lower corner first. "
                       "A center is box * anchor size + anchor center, and a size is anchor size * exp(box)"),
        output("num_detections", DType::i32, "N,1", "the number of detections of each item"),
        output("detection_boxes", "T", "N,detections,4", "the corners x1, y1, x2, y2 of the detections"),
        output("detection_scores", "T", "N,detections", "the scores of the detections"),
        output("detection_classes", DType::i32, "N,detections", "the classes of the detections"),
        output("detection_indices", DType::i32, "N,detections",
               "the index of each detection's box among the boxes of its item; class * boxes + box if each class has "
               "its own boxes")};
  }
  static constexpr auto types() {
    using enum DType;
    return std::array{TypeConstraint("T", f32, f16)};
  }
  [[nodiscard]] std::vector<Shape> infer_shapes(std::span<const Shape> inputs) const;
  [[nodiscard]] static Status check(const Problem& problem);
  [[nodiscard]] std::size_t workspace(const Problem& problem) const;
  /// Returns the description of the tensor that replaces the input `anchors` if a node omits it: a tensor without
  /// elements, in the type of the boxes. `given` are the descriptions of the node's inputs.
  [[nodiscard]] static TensorDesc constant(std::size_t /*port*/, std::span<const TensorDesc> given) {
    return {.dtype = given[boxes].dtype, .extents = {0}};
  }
  static void fill_constant(std::size_t /*port*/, const TensorDesc& /*desc*/, std::byte* /*bytes*/) {}
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& inputs) const;
  [[nodiscard]] static std::vector<DropIn> drop_ins();
};

[[nodiscard]] Status run(const CombinedNonMaxSuppression& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<CombinedNonMaxSuppression>> cuda_kernels(const CombinedNonMaxSuppression& op);

}  // namespace graft::ops
