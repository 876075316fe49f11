// Reference kernel of NonMaxSuppression.
#include <algorithm>

#include "ops/non_max_suppression/non_max_suppression.hpp"
#include "ops/non_max_suppression/overlap.hpp"
#include "ops/non_max_suppression/plan.hpp"
#include "ops/reference.hpp"

namespace graft::ops {
namespace {

/// Returns the boxes that are selected for one class of one item, in order of descending score.
template <class Element>
std::vector<std::int64_t> select(const Element* boxes, const Element* scores, std::int64_t count, std::int64_t most,
                                 bool is_center, float iou_threshold, float score_threshold) {
  std::vector<std::int64_t> candidates;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto score = static_cast<float>(scores[i]);
    if (score > score_threshold || (score_threshold == NonMaxSuppression::no_threshold && score == score)) {
      candidates.push_back(i);
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [&](std::int64_t a, std::int64_t b) {
    return static_cast<float>(scores[a]) > static_cast<float>(scores[b]);
  });
  std::vector<std::int64_t> selected;
  std::vector<Box> selected_boxes;
  for (const std::int64_t candidate : candidates) {
    if (std::ssize(selected) >= most) break;
    float numbers[4];
    for (std::int64_t i = 0; i < 4; ++i) numbers[i] = static_cast<float>(boxes[candidate * 4 + i]);
    const Box box = box_of(numbers, is_center);
    const bool is_suppressed = std::any_of(selected_boxes.begin(), selected_boxes.end(),
                                           [&](const Box& other) { return overlaps(box, other, iou_threshold); });
    if (is_suppressed) continue;
    selected.push_back(candidate);
    selected_boxes.push_back(box);
  }
  return selected;
}

}  // namespace

Status run(const NonMaxSuppression& op, const Problem& problem, const Buffers& buffers, const CpuContext& /*context*/) {
  return dispatch(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const SuppressionSizes sizes(problem);
    const auto* boxes = static_cast<const Element*>(buffers.inputs[0]);
    const auto* scores = static_cast<const Element*>(buffers.inputs[1]);
    const std::int64_t most =
        std::clamp<std::int64_t>(*static_cast<const std::int64_t*>(buffers.inputs[2]), 0, sizes.most);
    auto* indices = static_cast<std::int64_t*>(buffers.outputs[0]);
    std::int64_t count = 0;
    for (std::int64_t segment = 0; segment < sizes.segments; ++segment) {
      const std::int64_t item = segment / sizes.classes;
      const auto selected = select(boxes + item * sizes.boxes * 4, scores + segment * sizes.boxes, sizes.boxes, most,
                                   op.center_point_box != 0, *static_cast<const float*>(buffers.inputs[3]),
                                   *static_cast<const float*>(buffers.inputs[4]));
      for (const std::int64_t box : selected) {
        indices[count * 3] = item;
        indices[count * 3 + 1] = segment % sizes.classes;
        indices[count * 3 + 2] = box;
        ++count;
      }
    }
    store_size(problem.outputs[1].dtype, count, buffers.outputs[1]);
    return {};
  });
}

}  // namespace graft::ops
