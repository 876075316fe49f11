// Pass fuse_combined_non_max_suppression fuses a suppression with the nodes around it whose results have a fixed number
// of places:
//
//   n = NonZero(score > 0.25)                        count, place = CombinedNonMaxSuppression<score_threshold=0.25,
//   b, s = Gather(box, n), Gather(score, n)                             max_output_boxes=300>(box, score)
//   keep = NonMaxSuppression(b, s)[:300]             y = Where(0 .. 299 < count, Gather(box, place), 0)
//   y = Pad(Gather(b, keep), 300 - keep.size)
//
// Every tensor between NonZero and Pad has a size that depends on data, which TensorRT supports in few layers, and
// TensorRT-RTX only after a plugin. Ultralytics writes such nodes with nms=True, and tf2onnx for
// tf.image.non_max_suppression_padded; fusion/combined_tail.cpp has its nodes for several items and classes. The boxes
// that are compared are bitwise the same: nodes that compute each box alone are copied, once for all boxes and once for
// all places. A result without a fixed number of places keeps NonMaxSuppression (decision 0052).
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "graft/operator/registry.hpp"
#include "ops/combined_non_max_suppression/fusion/combined_tail.hpp"
#include "ops/combined_non_max_suppression/fusion/suppression_tail.hpp"
#include "passes/fuse.hpp"
#include "passes/operator_fusion.hpp"

namespace graft::passes {
namespace {

using suppression::CombinedTail;
using suppression::SuppressionTail;

std::shared_ptr<Operator> make_suppression(const CombinedTail& tail) {
  std::shared_ptr<Operator> op = find_operator("CombinedNonMaxSuppression")->create();
  // Scores of several classes that are equal have the order of the classes.
  const std::vector<NamedAttribute> attributes{{"score_threshold", tail.score_threshold},
                                               {"iou_threshold", tail.iou_threshold},
                                               {"max_output_boxes", tail.places},
                                               {"max_output_boxes_per_class", tail.most_of_class},
                                               {"top_k", std::int64_t{0}},
                                               {"top_k_per_class", std::int64_t{1}},
                                               {"clip_boxes", std::int64_t{tail.clips}}};
  return op->set(attributes).ok() ? op : nullptr;
}

std::shared_ptr<Operator> make_suppression(const SuppressionTail& tail) {
  std::shared_ptr<Operator> op = find_operator("CombinedNonMaxSuppression")->create();
  const std::vector<NamedAttribute> attributes{
      {"score_threshold", tail.score_threshold},
      {"iou_threshold", tail.iou_threshold},
      {"max_output_boxes", tail.places},
      {"max_output_boxes_per_class", tail.most < tail.places ? tail.most : std::int64_t{-1}},
      {"top_k", std::int64_t{0}},
      {"box_coding", std::int64_t{tail.is_center}}};
  return op->set(attributes).ok() ? op : nullptr;
}

/// Returns the first reader of the selected boxes, or the node itself. Near misses of the node are dropped if another
/// pass replaces its limit.
onnx::Node* reader_of(onnx::Node& node) {
  const onnx::Value* selected = node.output();
  return selected == nullptr || selected->uses.empty() ? &node : selected->uses.front().node;
}

void note_near_miss(Rewriter& rewriter, onnx::Node& node, std::size_t matched, const std::string& why_not) {
  constexpr std::size_t least_nodes = 4;  // NonMaxSuppression, the column of boxes, a Gather and the padding
  rewriter.near_miss("CombinedNonMaxSuppression", {.node = reader_of(node),
                                                   .matched_nodes = matched,
                                                   .pattern_nodes = std::max(matched + 1, least_nodes),
                                                   .reason = fmt::format("{}: {}", onnx::describe(node), why_not)});
}

/// Proposes to replace the nodes of a tail by `op`.
template <class Tail>
void propose(Rewriter& rewriter, const onnx::Node& node, const Tail& tail, const std::shared_ptr<Operator>& op,
             void (*replace)(onnx::Graph&, const Tail&, const Operator&)) {
  if (!is_wanted(rewriter, *op, *node.input(0), *tail.outputs.front(), 2)) return;
  rewriter.apply({.nodes = tail.nodes,
                  .inputs = tail.inputs,
                  .outputs = tail.outputs,
                  .replacement = to_text(*op),
                  .reason = fmt::format("the boxes that {} selects fill {} places", onnx::describe(node), tail.places),
                  .by_definition = "",
                  .edit = [tail, op, replace](onnx::Graph& copy) { replace(copy, tail, *op); }});
}

void fuse_combined_non_max_suppression(Rewriter& rewriter) {
  onnx::Graph& graph = rewriter.model().graph();  // TensorRT builds no plugin in other graphs.
  for (onnx::Node* node : graph.nodes()) {
    if (!node->is("NonMaxSuppression")) continue;
    std::string why_not;
    if (const auto combined = suppression::read_combined_tail(*node, why_not)) {
      if (const auto op = make_suppression(*combined)) {
        propose(rewriter, *node, *combined, op, suppression::replace_combined_tail);
      }
      continue;
    }
    std::size_t matched = 2;
    if (!why_not.empty()) {
      note_near_miss(rewriter, *node, matched, why_not);
      continue;
    }
    const auto tail = suppression::read_tail(rewriter.model(), *node, why_not, matched);
    const std::shared_ptr<Operator> op = tail ? make_suppression(*tail) : nullptr;
    if (op == nullptr) {
      note_near_miss(rewriter, *node, matched, why_not);
    } else {
      propose(rewriter, *node, *tail, op, suppression::replace_tail);
    }
  }
}

}  // namespace

extern const OperatorFusion combined_non_max_suppression_fusion{
    .pass = {
        "fuse_combined_non_max_suppression",
        "suppressions whose results have a fixed number of places; runs while the nodes around them are ONNX nodes",
        fuse_combined_non_max_suppression}};

}  // namespace graft::passes
