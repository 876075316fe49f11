// Definition of NonMaxSuppression: shapes, checks, the attributes that replace missing inputs, ONNX function.
#include "ops/non_max_suppression/non_max_suppression.hpp"

#include <cstring>
#include <stdexcept>

#include "ops/non_max_suppression/plan.hpp"

namespace graft::ops {
namespace {

constexpr std::size_t first_optional = 2;
constexpr std::size_t max_output_port = 2;
constexpr std::size_t iou_port = 3;

}  // namespace

/// Infers the shapes of the indices and of `count`. If the limit is an input, its value is unknown here, so the upper
/// bound is the number of all boxes.
std::vector<Shape> NonMaxSuppression::infer_shapes(std::span<const Shape> inputs) const {
  for (const std::size_t port : {0U, 1U}) {
    if (inputs[port].size() == 3) continue;
    throw std::invalid_argument("`" + std::string(ports()[port].name) + "` has rank " +
                                std::to_string(inputs[port].size()) + "; the rank must be 3");
  }
  const Dim& boxes = inputs[1][2];
  const Dim most = inputs.size() > max_output_port ? boxes : min(boxes, max_output_boxes_per_class);
  const Dim largest = inputs[1][0] * inputs[1][1] * most;
  constexpr std::int64_t usual_for_an_item = 100;
  return {{data_size(1, min(inputs[1][0] * usual_for_an_item, largest), largest), 3}, {}};
}

Status NonMaxSuppression::check(const Problem& problem) {
  const Extents& boxes = problem.inputs[0].extents;
  const Extents& scores = problem.inputs[1].extents;
  if (boxes[2] != 4 || boxes[0] != scores[0] || boxes[1] != scores[2]) {
    return invalid_argument("NonMaxSuppression: boxes has shape " + to_string(boxes) + " and scores has shape " +
                            to_string(scores) + "; the shapes must be N,boxes,4 and N,classes,boxes");
  }
  for (std::size_t port = first_optional; port < problem.inputs.size(); ++port) {
    const Extents& extents = problem.inputs[port].extents;
    if (extents.rank() <= 1 && extents.element_count() == 1) continue;
    return invalid_argument("NonMaxSuppression: " + std::string(ports()[port].name) + " has shape " +
                            to_string(extents) + "; it must have one element and at most one axis");
  }
  return {};
}

std::size_t NonMaxSuppression::workspace(const Problem& problem) {
  return static_cast<std::size_t>(SuppressionPlan(SuppressionSizes(problem)).bytes);
}

TensorDesc NonMaxSuppression::constant(std::size_t port, std::span<const TensorDesc> /*given*/) {
  return {.dtype = port == max_output_port ? DType::i64 : DType::f32, .layout = Layout::linear, .extents = {}};
}

void NonMaxSuppression::fill_constant(std::size_t port, const TensorDesc& desc, std::byte* bytes) const {
  const void* value = &score_threshold;
  if (port == max_output_port) value = &max_output_boxes_per_class;
  if (port == iou_port) value = &iou_threshold;
  std::memcpy(bytes, value, static_cast<std::size_t>(desc.storage_bytes()));
}

std::optional<Function> NonMaxSuppression::function(const FunctionInputs& inputs) const {
  std::string body = "boxes32 = Cast<to=1>(boxes)\nscores32 = Cast<to=1>(scores)\n";
  const auto supply = [&](std::size_t port, const std::string& input, const char* type) {
    if (inputs.count <= port) body += input + " = Constant<value_" + type + "=@" + input + ">()\n";
  };
  supply(max_output_port, "max_output_boxes_per_class", "int");
  supply(iou_port, "iou_threshold", "float");
  supply(iou_port + 1, "score_threshold", "float");
  body +=
      "selected_indices = NonMaxSuppression<center_point_box=@center_point_box>(boxes32, scores32, "
      "max_output_boxes_per_class, iou_threshold, score_threshold)\n"
      "sizes = Shape<start=0, end=1>(selected_indices)\n"
      "count = Squeeze(sizes)";
  return Function{"NonMaxSuppression_" + std::to_string(inputs.count), body};
}

}  // namespace graft::ops
