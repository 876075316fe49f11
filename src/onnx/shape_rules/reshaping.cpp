// Shape rules of operators that change the shape or order of their input's elements, or repeat them.
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "onnx/shape_rules/table.hpp"

namespace graft::onnx::shape_rules {
namespace {

void reshape(NodeTypes& t) {
  t.set_type(0, t.type(0));
  auto target = t.contents(1);
  if (const auto given = t.node().ints("shape"); given && t.is_before(5)) target.emplace(given->begin(), given->end());
  if (!target) {
    const Shape* shape = t.shape(1);
    if (shape == nullptr || shape->size() != 1 || !(*shape)[0].is_constant()) return;
    if ((*shape)[0].value() < 0 || (*shape)[0].value() > 64) return;
    Shape result;
    for (std::int64_t i = 0; i < (*shape)[0].value(); ++i) result.push_back(unknown_dim());
    t.set_shape(0, std::move(result));
    return;
  }
  const Shape* x = t.shape(0);
  const bool allow_zero = t.node().int_or("allowzero", 0) != 0;
  Shape result;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < target->size(); ++i) {
    const Dim& dim = (*target)[i];
    if (dim == Dim(0) && !allow_zero) {
      if (x != nullptr && i >= x->size())
        t.fail(fmt::format("the new shape copies dimension {}, but the input has only rank {}", i, x->size()));
      result.push_back(x == nullptr ? unknown_dim() : (*x)[i]);
    } else if (dim == Dim(-1)) {
      if (open) t.fail("the new shape contains -1 more than once; at most one dimension may be -1");
      open = i;
      result.push_back(unknown_dim());
    } else {
      if (dim.is_constant() && dim.value() < 0)
        t.fail(fmt::format("the new shape contains {}; every dimension must be at least -1", dim.value()));
      result.push_back(dim);
    }
  }
  if (x != nullptr) {
    Factors all;
    for (const Dim& dim : *x) all.multiply(dim);
    Factors rest;
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (i != open) rest.multiply(result[i]);
    }
    if (all.others.empty() && rest.others.empty()) {
      const bool fits = open ? rest.constant != 0 && all.constant % rest.constant == 0 : all.constant == rest.constant;
      if (!fits && !(open && all.constant == 0)) {
        t.fail(fmt::format("the input {} has {} elements, which do not fit the new shape {}", to_string(*x),
                           all.constant, to_string(result)));
      }
    }
    if (open) result[*open] = divide(all, rest);
  }
  t.set_shape(0, std::move(result));
  if (const auto contents = t.contents(0)) t.set_contents(0, *contents);
}

void flatten(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  if (x == nullptr) return;
  const auto rank = static_cast<std::int64_t>(x->size());
  std::int64_t axis = t.node().int_or("axis", 1);
  if (axis < -rank || axis > rank)
    t.fail(fmt::format("axis {} is out of range; it must be between {} and {}", axis, -rank, rank));
  if (axis < 0) axis += rank;
  const auto split = static_cast<std::size_t>(axis);
  t.set_shape(0, {product(*x, 0, split), product(*x, split, x->size())});
}

void squeeze(NodeTypes& t) {
  t.set_type(0, t.type(0));
  if (const auto contents = t.contents(0)) t.set_contents(0, *contents);
  const Shape* x = t.shape(0);
  const bool given = t.node().attribute("axes") != nullptr || t.has_input(1);
  const auto axes = t.ints("axes", 1);
  if (x == nullptr || (given && !axes)) return;
  std::vector<bool> drop(x->size(), false);
  if (axes) {
    for (const std::int64_t axis : *axes) drop[t.axis(axis, x->size())] = true;
  }
  Shape result;
  for (std::size_t i = 0; i < x->size(); ++i) {
    const Dim& dim = (*x)[i];
    if (!given) {
      if (!dim.is_constant()) return;  // The value of the dimension decides whether it is removed.
      drop[i] = dim.value() == 1;
    } else if (drop[i] && dim.is_constant() && dim.value() != 1) {
      t.fail(fmt::format("dimension {} is {}; only dimensions of 1 can be removed", i, dim.value()));
    }
    if (!drop[i]) result.push_back(dim);
  }
  t.set_shape(0, std::move(result));
}

void unsqueeze(NodeTypes& t) {
  t.set_type(0, t.type(0));
  if (const auto contents = t.contents(0)) t.set_contents(0, *contents);
  const Shape* x = t.shape(0);
  const auto axes = t.ints("axes", 1);
  if (x == nullptr || !axes) return;
  const std::size_t rank = x->size() + axes->size();
  std::vector<bool> added(rank, false);
  for (const std::int64_t axis : *axes) {
    const std::size_t at = t.axis(axis, rank);
    if (added[at]) t.fail(fmt::format("axis {} is given twice", axis));
    added[at] = true;
  }
  Shape result;
  auto next = x->begin();
  for (std::size_t i = 0; i < rank; ++i) result.push_back(added[i] ? Dim(1) : *next++);
  t.set_shape(0, std::move(result));
}

/// Sets the elements of the output of a Transpose as known to inference, if the input is a matrix whose elements are
/// known.
void transpose_contents(NodeTypes& t) {
  const auto contents = t.contents(0);
  const Shape& x = *t.shape(0);
  const auto order = t.node().ints("perm");
  if (!contents || x.size() != 2 || !x[0].is_constant() || !x[1].is_constant()) return;
  const auto rows = static_cast<std::size_t>(x[0].value());
  const auto columns = static_cast<std::size_t>(x[1].value());
  if (contents->size() != rows * columns) return;
  if (order && (*order)[0] == 0) {
    t.set_contents(0, *contents);
    return;
  }
  Contents result;
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t row = 0; row < rows; ++row) result.push_back((*contents)[row * columns + column]);
  }
  t.set_contents(0, std::move(result));
}

void transpose(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  if (x == nullptr) return;
  const auto order = t.node().ints("perm");
  Shape result(x->rbegin(), x->rend());
  if (order) {
    if (order->size() != x->size()) {
      t.fail(fmt::format("attribute `perm` has {} elements; it must have {}", order->size(), x->size()));
    }
    std::vector<bool> taken(x->size(), false);
    for (std::size_t i = 0; i < order->size(); ++i) {
      const std::size_t axis = t.axis((*order)[i], x->size());
      if (taken[axis]) t.fail(fmt::format("attribute `perm`: axis {} is given twice", (*order)[i]));
      taken[axis] = true;
      result[i] = (*x)[axis];
    }
  }
  transpose_contents(t);
  t.set_shape(0, std::move(result));
}

void expand(NodeTypes& t) {
  t.set_type(0, t.type(0));
  auto target = t.contents(1);
  const Shape* x = t.shape(0);
  const Shape* target_shape = t.shape(1);
  if (!target && target_shape != nullptr && target_shape->size() == 1 && (*target_shape)[0].is_constant() &&
      (*target_shape)[0].value() <= 64) {
    target.emplace();
    for (std::int64_t i = 0; i < (*target_shape)[0].value(); ++i) target->push_back(unknown_dim());
  }
  if (x == nullptr || !target) return;
  Shape result = *x;
  Shape other = *target;
  if (other.size() > result.size()) std::swap(result, other);
  const std::size_t shift = result.size() - other.size();
  for (std::size_t i = 0; i < other.size(); ++i) result[shift + i] = broadcast(result[shift + i], other[i], t);
  t.set_shape(0, std::move(result));
  const auto contents = t.contents(0);
  if (!contents || contents->size() != 1 || target->size() != 1 || !(*target)[0].is_constant()) return;
  const std::int64_t count = (*target)[0].value();
  if (count >= 0 && count <= 64) t.set_contents(0, Contents(static_cast<std::size_t>(count), (*contents)[0]));
}

void tile(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  const auto repeats = t.contents(1);
  if (x == nullptr) return;
  Shape result = *x;
  if (repeats && repeats->size() != x->size())
    t.fail(fmt::format("it has {} repeats for an input of rank {}; there must be one repeat for each dimension",
                       repeats->size(), x->size()));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = repeats ? result[i] * (*repeats)[i] : unknown_dim();
  t.set_shape(0, std::move(result));
}

void depth_and_space(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  const std::int64_t block = t.node().int_or("blocksize", 0);
  if (x == nullptr || x->size() != 4) return;
  if (block < 1 || block > 1'000'000)
    t.fail(fmt::format("attribute `blocksize` is {}; it must be between 1 and 1000000", block));
  const Dim area = Dim(block) * block;
  const auto check_divides = [&](std::size_t axis, const Dim& parts) {
    const Dim& size = (*x)[axis];
    if (!size.is_constant() || size.value() % parts.value() == 0) return;
    t.fail(fmt::format("dimension {} is {}; attribute `blocksize` = {} requires a multiple of {}", axis, size.value(),
                       block, parts.value()));
  };
  if (t.node().op_type == "DepthToSpace") {
    check_divides(1, area);
    t.set_shape(0, {(*x)[0], floor_div((*x)[1], area), (*x)[2] * block, (*x)[3] * block});
  } else {
    check_divides(2, block);
    check_divides(3, block);
    t.set_shape(0, {(*x)[0], (*x)[1] * area, floor_div((*x)[2], block), floor_div((*x)[3], block)});
  }
}

}  // namespace

void add_reshaping(Table& table) {
  add(table, reshape, {"Reshape"});
  add(table, flatten, {"Flatten"});
  add(table, squeeze, {"Squeeze"});
  add(table, unsqueeze, {"Unsqueeze"});
  add(table, transpose, {"Transpose"});
  add(table, expand, {"Expand"});
  add(table, tile, {"Tile"});
  add(table, depth_and_space, {"DepthToSpace", "SpaceToDepth"});
}

}  // namespace graft::onnx::shape_rules
