// Shape rules of operators that create tensors from sizes, values or nothing.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "onnx/shape_rules/table.hpp"

namespace graft::onnx::shape_rules {
namespace {

void shape_of(NodeTypes& t) {
  t.set_type(0, ElementType::i64);
  const Shape* x = t.shape(0);
  if (x == nullptr) {
    t.set_shape(0, {unknown_dim()});
    return;
  }
  const auto rank = static_cast<std::int64_t>(x->size());
  const auto clamp = [&](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + rank : v, 0, rank); };
  const std::int64_t start = clamp(t.node().int_or("start", 0));
  const std::int64_t end = std::max(start, clamp(t.node().int_or("end", rank)));
  t.set_shape(0, {end - start});
  t.set_contents(0, Contents(x->begin() + start, x->begin() + end));
}

void size_of(NodeTypes& t) {
  t.set_type(0, ElementType::i64);
  t.set_shape(0, {});
  if (t.shape(0) != nullptr) t.set_contents(0, {product(*t.shape(0), 0, t.shape(0)->size())});
}

void constant(NodeTypes& t) {
  if (t.node().output() == nullptr) return;
  const auto tensor = t.node().output()->constant();
  if (!tensor) return;
  t.set_type(0, tensor->type);
  t.set_shape(0, Shape(tensor->dims.begin(), tensor->dims.end()));
}

void constant_of_shape(NodeTypes& t) {
  const NodeAttribute* value = t.node().attribute("value");
  const auto* tensor = value == nullptr ? nullptr : value->get<TensorData>();
  t.set_type(0, tensor == nullptr ? ElementType::f32 : tensor->type);
  const auto shape = t.contents(0);
  if (!shape) return;
  for (const Dim& dim : *shape) {
    if (dim.is_constant() && dim.value() < 0)
      t.fail(fmt::format("a dimension is {}; it must be at least 0", dim.value()));
  }
  t.set_shape(0, *shape);
  const auto fill = tensor == nullptr ? std::nullopt : tensor->ints();
  if (!fill || fill->size() != 1 || shape->size() != 1 || !(*shape)[0].is_constant() || (*shape)[0].value() > 64)
    return;
  t.set_contents(0, Contents(static_cast<std::size_t>((*shape)[0].value()), Dim((*fill)[0])));
}

void range(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const auto start = t.contents(0);
  const auto limit = t.contents(1);
  const auto delta = t.contents(2);
  const bool known = start && limit && delta && start->size() == 1 && limit->size() == 1 && delta->size() == 1 &&
                     (*delta)[0].is_constant() && (*delta)[0].value() != 0;
  if (!known) {
    t.set_shape(0, {unknown_dim()});
    return;
  }
  const Dim count = ceil_div((*limit)[0] - (*start)[0], (*delta)[0]);
  t.set_shape(0, {count.is_constant() ? Dim(std::max<std::int64_t>(0, count.value())) : count});
  if (!count.is_constant() || count.value() > 64 || !(*start)[0].is_constant()) return;
  Contents contents;
  for (std::int64_t i = 0; i < count.value(); ++i) contents.push_back((*start)[0] + Dim(i) * (*delta)[0]);
  t.set_contents(0, std::move(contents));
}

void one_hot(NodeTypes& t) {
  t.set_type(0, t.type(2));
  const Shape* indices = t.shape(0);
  if (indices == nullptr) return;
  const auto depth = t.contents(1);
  Shape result = *indices;
  const std::size_t axis = t.axis(t.node().int_or("axis", -1), indices->size() + 1);
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(axis),
                depth && depth->size() == 1 ? (*depth)[0] : unknown_dim());
  t.set_shape(0, std::move(result));
}

void non_zero(NodeTypes& t) {
  t.set_type(0, ElementType::i64);
  t.set_shape(
      0, {t.shape(0) == nullptr ? unknown_dim() : Dim(static_cast<std::int64_t>(t.shape(0)->size())), unknown_dim()});
}

void eye_like(NodeTypes& t) {
  const auto dtype = static_cast<ElementType>(t.node().int_or("dtype", 0));
  t.set_type(0, dtype == ElementType::undefined ? t.type(0) : std::optional(dtype));
  if (t.shape(0) != nullptr) t.set_shape(0, *t.shape(0));
}

/// Returns the number in an input with one element, or an unknown dimension. Throws Error for a negative number.
Dim size_in(const NodeTypes& t, std::size_t input) {
  const auto size = t.contents(input);
  if (!size || size->size() != 1) return unknown_dim();
  if ((*size)[0].is_constant() && (*size)[0].value() < 0) {
    t.fail(fmt::format("a size is {}; it must be at least 0", (*size)[0].value()));
  }
  return (*size)[0];
}

ElementType output_datatype(const NodeTypes& t) {
  return static_cast<ElementType>(t.node().int_or("output_datatype", static_cast<std::int64_t>(ElementType::f32)));
}

void window(NodeTypes& t) {
  t.set_type(0, output_datatype(t));
  t.set_shape(0, {size_in(t, 0)});
}

void mel_weight_matrix(NodeTypes& t) {
  t.set_type(0, output_datatype(t));
  t.set_shape(0, {floor_div(size_in(t, 1), 2) + 1, size_in(t, 0)});
}

/// Infers the output of AffineGrid, which has the shape [N, spatial sizes, number of spatial axes].
void affine_grid(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const auto size = t.contents(1);
  constexpr std::size_t planar = 4;
  if (!size || (size->size() != planar && size->size() != planar + 1)) return;
  Shape result = {(*size)[0]};
  result.insert(result.end(), size->begin() + 2, size->end());
  result.emplace_back(static_cast<std::int64_t>(size->size() - 2));
  t.set_shape(0, std::move(result));
}

void random(NodeTypes& t) {
  t.set_type(0, static_cast<ElementType>(t.node().int_or("dtype", 1)));
  if (const auto shape = t.node().ints("shape")) t.set_shape(0, Shape(shape->begin(), shape->end()));
}

void multinomial(NodeTypes& t) {
  t.set_type(0, static_cast<ElementType>(t.node().int_or("dtype", static_cast<std::int64_t>(ElementType::i32))));
  const Shape* x = t.shape(0);
  t.set_shape(0, {x == nullptr || x->empty() ? unknown_dim() : x->front(), t.node().int_or("sample_size", 1)});
}

}  // namespace

void add_sources(Table& table) {
  add(table, shape_of, {"Shape"});
  add(table, size_of, {"Size"});
  add(table, constant, {"Constant"});
  add(table, constant_of_shape, {"ConstantOfShape"});
  add(table, range, {"Range"});
  add(table, one_hot, {"OneHot"});
  add(table, non_zero, {"NonZero"});
  add(table, eye_like, {"Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike"});
  add(table, window, {"BlackmanWindow", "HammingWindow", "HannWindow"});
  add(table, mel_weight_matrix, {"MelWeightMatrix"});
  add(table, affine_grid, {"AffineGrid"});
  add(table, multinomial, {"Multinomial"});
  add(table, random, {"RandomNormal", "RandomUniform"});
}

}  // namespace graft::onnx::shape_rules
