// Reference kernel of CombinedNonMaxSuppression.
#include <algorithm>

#include "ops/combined_non_max_suppression/combined_non_max_suppression.hpp"
#include "ops/combined_non_max_suppression/detection_box.hpp"
#include "ops/combined_non_max_suppression/plan.hpp"
#include "ops/reference.hpp"

namespace graft::ops {
namespace {

using Op = CombinedNonMaxSuppression;

struct Candidate {
  float score = 0;
  std::int64_t box = 0;
  std::int64_t label = 0;
};

/// The inputs and outputs of one item.
template <class Element>
struct ItemDetections {
  const Op& op;
  const DetectionSizes& sizes;
  const Element* boxes;
  const Element* scores;
  const Element* anchors;
  std::int32_t* count;
  Element* detection_boxes;
  Element* detection_scores;
  std::int32_t* detection_classes;
  std::int32_t* detection_indices;

  /// Returns the candidates by descending score; equal scores are in the order of their numbers.
  [[nodiscard]] std::vector<Candidate> candidates() const {
    std::vector<Candidate> found;
    const float lowest = lowest_candidate(op);
    const std::int64_t outer = op.top_k_per_class ? sizes.classes : sizes.boxes;
    for (std::int64_t i = 0; i < outer; ++i) {
      for (std::int64_t j = 0; j < sizes.scores() / outer; ++j) {
        const std::int64_t box = op.top_k_per_class ? j : i;
        const std::int64_t label = op.top_k_per_class ? i : j;
        const auto score = static_cast<float>(scores[box * sizes.classes + label]);
        if (label != op.background_class && score >= lowest) found.push_back({score, box, label});
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    return found;
  }

  [[nodiscard]] static Coordinates read(const Element* from) {
    Coordinates box{};
    for (int i = 0; i < 4; ++i) box.values[i] = static_cast<float>(from[i]);
    return box;
  }

  /// Returns the corners of a candidate.
  [[nodiscard]] Coordinates corners(const Candidate& candidate) const {
    const std::int64_t at =
        sizes.has_boxes_of_classes ? candidate.box * sizes.classes + candidate.label : candidate.box;
    Coordinates box = read(boxes + at * 4);
    if (sizes.has_anchors) box = refine(box, read(anchors + candidate.box * 4), op.box_coding != 0);
    return corners_of(box, op.box_coding != 0);
  }

  void write(std::int64_t at, const Candidate& candidate, const Coordinates& corners) const {
    for (int i = 0; i < 4; ++i) {
      const float value = corners.values[i];
      detection_boxes[at * 4 + i] = store<Element>(op.clip_boxes ? clip_to_image(value) : value, 1);
    }
    detection_scores[at] = store<Element>(op.score_activation ? logistic(candidate.score) : candidate.score, 1);
    detection_classes[at] = static_cast<std::int32_t>(candidate.label);
    const std::int64_t first = sizes.has_boxes_of_classes ? candidate.label * sizes.boxes : 0;
    detection_indices[at] = static_cast<std::int32_t>(first + candidate.box);
  }

  void run() const {
    struct Kept {
      Box box;
      std::int64_t label;
    };
    std::vector<Kept> kept;
    std::vector<std::int64_t> visited(static_cast<std::size_t>(op.top_k_per_class ? sizes.classes : 1));
    std::vector<std::int64_t> detected(static_cast<std::size_t>(sizes.classes));
    for (const Candidate& candidate : candidates()) {
      if (std::ssize(kept) == sizes.most) break;
      const auto label = static_cast<std::size_t>(candidate.label);
      if (++visited[op.top_k_per_class ? label : 0] > op.top_k && op.top_k > 0) continue;
      if (op.max_output_boxes_per_class > 0 && detected[label] == op.max_output_boxes_per_class) continue;
      const Coordinates found = corners(candidate);
      const Box box = box_of(found.values, false);
      const bool is_suppressed = std::any_of(kept.begin(), kept.end(), [&](const Kept& other) {
        return (op.class_agnostic || other.label == candidate.label) &&
               overlaps(box, other.box, op.iou_threshold, op.pixel_boxes ? 1.F : 0.F);
      });
      if (is_suppressed) continue;
      write(std::ssize(kept), candidate, found);
      kept.push_back({box, candidate.label});
      ++detected[label];
    }
    *count = static_cast<std::int32_t>(kept.size());
    for (std::int64_t at = std::ssize(kept); at < sizes.most; ++at) {
      std::fill_n(detection_boxes + at * 4, 4, Element(0));
      detection_scores[at] = Element(0);
      detection_classes[at] = static_cast<std::int32_t>(op.empty_class);
      detection_indices[at] = static_cast<std::int32_t>(op.empty_class);
    }
  }
};

}  // namespace

Status run(const CombinedNonMaxSuppression& op, const Problem& problem, const Buffers& buffers,
           const CpuContext& context) {
  return dispatch(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const DetectionSizes sizes(problem);
    const auto* boxes = static_cast<const Element*>(buffers.inputs[Op::boxes]);
    const auto* scores = static_cast<const Element*>(buffers.inputs[Op::scores]);
    const auto* anchors = static_cast<const Element*>(buffers.inputs[Op::anchors]);
    const std::int64_t coordinates = (sizes.has_boxes_of_classes ? sizes.scores() : sizes.boxes) * 4;
    context.parallel_for(sizes.items, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t first = item * sizes.most;
        ItemDetections<Element>{
            .op = op,
            .sizes = sizes,
            .boxes = boxes + item * coordinates,
            .scores = scores + item * sizes.scores(),
            .anchors = sizes.has_anchors_of_items ? anchors + item * sizes.boxes * 4 : anchors,
            .count = static_cast<std::int32_t*>(buffers.outputs[Op::num_detections]) + item,
            .detection_boxes = static_cast<Element*>(buffers.outputs[Op::detection_boxes]) + first * 4,
            .detection_scores = static_cast<Element*>(buffers.outputs[Op::detection_scores]) + first,
            .detection_classes = static_cast<std::int32_t*>(buffers.outputs[Op::detection_classes]) + first,
            .detection_indices = static_cast<std::int32_t*>(buffers.outputs[Op::detection_indices]) + first}
            .run();
      }
    });
    return {};
  });
}

}  // namespace graft::ops
