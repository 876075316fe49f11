// Shape rules of operators on regions of images.
#include <utility>

#include "onnx/shape_rules/table.hpp"

namespace graft::onnx::shape_rules {
namespace {

void non_max_suppression(NodeTypes& t) {
  t.set_type(0, ElementType::i64);
  t.set_shape(0, {unknown_dim(), 3});
}

void max_roi_pool(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  const Shape* rois = t.shape(1);
  const auto pooled = t.node().ints("pooled_shape");
  if (x == nullptr || x->size() != 4 || rois == nullptr || rois->empty() || !pooled || pooled->size() != 2) return;
  t.set_shape(0, {(*rois)[0], (*x)[1], (*pooled)[0], (*pooled)[1]});
}

void roi_align(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  const Shape* rois = t.shape(1);
  if (x == nullptr || x->size() != 4) return;
  t.set_shape(0, {rois == nullptr || rois->empty() ? unknown_dim() : (*rois)[0], (*x)[1],
                  t.node().int_or("output_height", 1), t.node().int_or("output_width", 1)});
}

void grid_sample(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  const Shape* grid = t.shape(1);
  if (x == nullptr || grid == nullptr || x->size() < 3 || grid->size() != x->size()) return;
  Shape result{(*x)[0], (*x)[1]};
  result.insert(result.end(), grid->begin() + 1, grid->end() - 1);
  t.set_shape(0, std::move(result));
}

}  // namespace

void add_regions(Table& table) {
  add(table, non_max_suppression, {"NonMaxSuppression"});
  add(table, roi_align, {"RoiAlign"});
  add(table, max_roi_pool, {"MaxRoiPool"});
  add(table, grid_sample, {"GridSample"});
}

}  // namespace graft::onnx::shape_rules
