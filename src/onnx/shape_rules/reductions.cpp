// Shape rules of reductions, and of operators that run along an axis.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "onnx/shape_rules/table.hpp"

namespace graft::onnx::shape_rules {
namespace {

void reduce_over(NodeTypes& t, const std::vector<std::int64_t>& axes, bool keep) {
  const Shape& x = *t.shape(0);
  std::vector<bool> reduced(x.size(), axes.empty());
  for (const std::int64_t axis : axes) reduced[t.axis(axis, x.size())] = true;
  Shape result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!reduced[i]) result.push_back(x[i]);
    if (reduced[i] && keep) result.emplace_back(1);
  }
  t.set_shape(0, std::move(result));
}

void reduction(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const bool given = t.node().attribute("axes") != nullptr || t.has_input(1);
  const auto axes = t.ints("axes", 1);
  const bool keep = t.node().int_or("keepdims", 1) != 0;
  const bool nothing_to_do = (!given || (axes && axes->empty())) && t.node().int_or("noop_with_empty_axes", 0) != 0;
  if (t.shape(0) == nullptr) return;
  if (nothing_to_do) {
    t.set_shape(0, *t.shape(0));
  } else if (!given || axes) {
    reduce_over(t, axes.value_or(std::vector<std::int64_t>{}), keep);
  } else if (keep) {
    Shape result;
    for (std::size_t i = 0; i < t.shape(0)->size(); ++i) result.push_back(unknown_dim());
    t.set_shape(0, std::move(result));
  }
  const auto contents = t.contents(0);
  if (t.node().op_type == "ReduceProd" && contents && t.shape(0)->size() == 1 && !nothing_to_do) {
    t.set_contents(0, {product(*contents, 0, contents->size())});
  }
}

void arg_reduction(NodeTypes& t) {
  t.set_type(0, ElementType::i64);
  if (t.shape(0) != nullptr) reduce_over(t, {t.node().int_or("axis", 0)}, t.node().int_or("keepdims", 1) != 0);
}

void top_k(NodeTypes& t) {
  t.set_type(0, t.type(0));
  t.set_type(1, ElementType::i64);
  const Shape* x = t.shape(0);
  if (x == nullptr) return;
  Shape result = *x;
  Dim& dim = result[t.axis(t.node().int_or("axis", -1), x->size())];
  const auto k = t.contents(1);
  if (t.node().attribute("k") != nullptr) {
    dim = t.node().int_or("k", 0);
  } else {
    const Dim wanted = k && k->size() == 1 ? (*k)[0] : unknown_dim();
    // Engines do not check k, and would read beyond the end of the axis.
    if (wanted.is_constant() && dim.is_constant() && (wanted.value() < 0 || wanted.value() > dim.value())) {
      t.fail(fmt::format("k is {}; it must be between 0 and {}", wanted.value(), dim.value()));
    }
    dim = wanted;
  }
  t.set_shape(0, result);
  t.set_shape(1, std::move(result));
}

void cumulative(NodeTypes& t) {
  t.copy(0);
  const auto axis = t.ints(1);
  if (t.shape(0) != nullptr && axis && axis->size() == 1) static_cast<void>(t.axis((*axis)[0], t.shape(0)->size()));
}

}  // namespace

void add_reductions(Table& table) {
  add(table, reduction, trait::reduction);
  add(table, arg_reduction, {"ArgMax", "ArgMin"});
  add(table, top_k, {"TopK"});
  add(table, cumulative, {"CumProd", "CumSum"});
}

}  // namespace graft::onnx::shape_rules
