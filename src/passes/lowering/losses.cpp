// The losses of classifiers, which exports of training code keep: TensorRT has no such layer.
//
//   SoftmaxCrossEntropyLoss(x, t)           becomes   p = LogSoftmax(x), NegativeLogLikelihoodLoss(p, t)
//   NegativeLogLikelihoodLoss(p, t, w)      becomes   -GatherElements(p, t) * Gather(w, t), and its sum or mean
//
// A target of ignore_index, which need not be a class, counts as class 0 with the weight 0.
#include <fmt/format.h>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

/// Writes the loss `y0` from `log_probability`, an f32 tensor of shape N,C,d1..dk.
void write_loss(Replacement& result, const Site& site, const std::string& log_probability) {
  const onnx::Node& node = site.node();
  const std::string reduction = node.string_or("reduction", "mean");
  std::string target = "x1";
  const bool ignores = node.attributes.contains("ignore_index");
  if (ignores) {
    result.number("ignore_index", static_cast<double>(node.int_or("ignore_index", 0)), site.type(1));
    result.line("is_ignored = Equal(x1, ignore_index)");
    result.number("first_class", 0, site.type(1));
    result.line("target = Where(is_ignored, first_class, x1)");
    target = "target";
  }
  result.ints("class_axis", {1});
  result.line(fmt::format("index = Unsqueeze({}, class_axis)", target));
  result.line(fmt::format("found = GatherElements<axis=1>({}, index)", log_probability));
  result.line("of_target = Squeeze(found, class_axis)");
  result.line("negative = Neg(of_target)");
  std::string loss = "negative";
  std::string weight;
  if (site.has_input(2)) {
    const std::string weights = result.in_f32("x2", site.type(2));
    result.line(fmt::format("weight_of_class = Gather<axis=0>({}, {})", weights, target));
    result.line("weighted = Mul(negative, weight_of_class)");
    loss = "weighted";
    weight = "weight_of_class";
  }
  if (ignores) {
    result.number("nothing", 0);
    result.line(fmt::format("counted = Where(is_ignored, nothing, {})", loss));
    loss = "counted";
    if (weight.empty()) weight = result.number("one", 1);
    result.line(fmt::format("weight = Where(is_ignored, nothing, {})", weight));
    weight = "weight";
  }
  const onnx::ElementType type = site.type(0);
  if (reduction == "none") {
    result.give("y0", type, fmt::format("Identity({})", loss));
  } else if (reduction == "sum") {
    result.give("y0", type, fmt::format("ReduceSum<keepdims=0>({})", loss));
  } else if (weight.empty()) {
    result.give("y0", type, fmt::format("ReduceMean<keepdims=0>({})", loss));
  } else {
    result.line(fmt::format("sum = ReduceSum<keepdims=0>({})", loss));
    result.line(fmt::format("sum_of_weights = ReduceSum<keepdims=0>({})", weight));
    result.give("y0", type, "Div(sum, sum_of_weights)");
  }
}

}  // namespace

std::optional<Replacement> lower_classification_loss(Site& site) {
  if (!site.is_real(0)) return site.no_type(0);
  const Shape* input = site.shape(0);
  const Shape* target = site.shape(1);
  if (input != nullptr && target != nullptr && input->size() != target->size() + 1)
    return site.no("its target does not have the shape of its input without the axis of the classes");
  const std::string reduction = site.node().string_or("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return site.no(fmt::format("its reduction is '{}'", reduction));
  Replacement result;
  std::string log_probability = result.in_f32("x0", site.type(0));
  const bool is_softmax = site.node().op_type == "SoftmaxCrossEntropyLoss";
  if (is_softmax) {
    result.line(fmt::format("log_probability = LogSoftmax<axis=1>({})", log_probability));
    log_probability = "log_probability";
    if (site.is_used(1)) result.give("y1", site.type(0), "Identity(log_probability)");
  }
  write_loss(result, site, log_probability);
  result.summary = is_softmax ? "LogSoftmax, the number of the target class, and its mean or sum"
                              : "the number of the target class, and its mean or sum";
  return result;
}

}  // namespace graft::passes
