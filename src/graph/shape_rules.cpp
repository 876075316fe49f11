// The rules of shape inference for the operators of ai.onnx. Formulas are those of ONNX's operator documentation.
#include "graph/shape_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "graph/operator_node.hpp"

namespace graft {
namespace {

using Rule = void (*)(NodeTypes&);

Dim product(const Shape& shape, std::size_t first, std::size_t last) {
  Dim result(1);
  for (std::size_t i = first; i < last; ++i) result = bounded(result * shape[i]);
  return result;
}

/// A product as a constant and the rest, so that equal symbols cancel in a division.
struct Factors {
  std::int64_t constant = 1;
  std::vector<Dim> others;

  void multiply(const Dim& dim) {
    if (dim.is_constant()) {
      constant = (Dim(constant) * dim).value();
    } else if (dim.kind() == Dim::Kind::multiply) {
      multiply(dim.left());
      multiply(dim.right());
    } else {
      others.push_back(dim);
    }
  }
};

/// What `dividend` / `divisor` is, given that it divides exactly; an unknown dimension where that cannot be said.
Dim divide(const Factors& dividend, Factors divisor) {
  std::vector<Dim> rest;
  for (const Dim& dim : dividend.others) {
    const auto found = std::find(divisor.others.begin(), divisor.others.end(), dim);
    if (found == divisor.others.end()) {
      rest.push_back(dim);
    } else {
      divisor.others.erase(found);
    }
  }
  if (!divisor.others.empty() || divisor.constant == 0) return unknown_dim();
  if (dividend.constant == 0) return 0;
  Dim result(1);
  for (const Dim& dim : rest) result = bounded(result * dim);
  if (dividend.constant % divisor.constant != 0) return floor_div(result * dividend.constant, divisor.constant);
  return result * (dividend.constant / divisor.constant);
}

// ---- Elementwise

void same(NodeTypes& t) { t.copy(0); }

void set_broadcast(NodeTypes& t, std::size_t first, std::size_t last) {
  if (t.is_before(7)) {  // the second has the first one's shape, or is spread over it from an axis on
    if (t.shape(first) != nullptr) t.set_shape(0, *t.shape(first));
    return;
  }
  Shape result;
  for (std::size_t i = first; i < last; ++i) {
    if (t.shape(i) == nullptr) return;
    Shape other = *t.shape(i);
    if (other.size() > result.size()) std::swap(result, other);
    const std::size_t shift = result.size() - other.size();
    for (std::size_t k = 0; k < other.size(); ++k) result[shift + k] = broadcast(result[shift + k], other[k], t);
  }
  t.set_shape(0, std::move(result));
}

/// Calls `f` for each pair of elements where both inputs are known by value, one of them may be a single number.
template <class F>
void follow_contents(NodeTypes& t, F&& f) {
  const auto a = t.contents(0);
  const auto b = t.contents(1);
  if (!a || !b || a->empty() || b->empty()) return;
  if (a->size() != b->size() && a->size() != 1 && b->size() != 1) return;
  Contents result;
  for (std::size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
    const std::optional<Dim> value = f((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!value) return;
    result.push_back(*value);
  }
  t.set_contents(0, std::move(result));
}

void arithmetic(NodeTypes& t) {
  // The exponent of Pow and the distance of a shift may be of another type than the result.
  const bool mixed = t.node().op_type == "Pow" || t.node().op_type == "BitShift";
  t.set_type(0, t.type(0) || mixed ? t.type(0) : t.type(1));
  set_broadcast(t, 0, t.node().inputs.size());
  if (t.node().inputs.size() != 2) return;
  const std::string& op = t.node().op_type;
  follow_contents(t, [&](const Dim& a, const Dim& b) -> std::optional<Dim> {
    if (op == "Add" || op == "Sum") return a + b;
    if (op == "Sub") return a - b;
    if (op == "Mul") return a * b;
    if (op == "Min") return min(a, b);
    if (op == "Max") return max(a, b);
    if (op != "Div") return std::nullopt;
    if (a.is_constant() && b.is_constant()) {  // ONNX divides towards zero
      if (b.value() == 0 || (b.value() == -1 && a.value() == INT64_MIN)) return std::nullopt;
      return Dim(a.value() / b.value());
    }
    if (!b.is_constant() || b.value() <= 0) return std::nullopt;
    Factors dividend;
    dividend.multiply(a);
    return dividend.constant % b.value() == 0 ? divide(dividend, Factors{b.value(), {}}) : floor_div(a, b);
  });
}

void comparison(NodeTypes& t) {
  t.set_type(0, ElementType::boolean);
  set_broadcast(t, 0, 2);
  if (t.node().op_type != "Equal") return;
  follow_contents(t, [](const Dim& a, const Dim& b) -> std::optional<Dim> {
    if (a == b) return Dim(1);
    if (a.is_constant() && b.is_constant()) return Dim(0);
    const auto differs = [](const Dim& symbol, const Dim& number) {  // a dimension is never negative
      return symbol.kind() == Dim::Kind::symbol && number.is_constant() && number.value() < 0;
    };
    if (differs(a, b) || differs(b, a)) return Dim(0);
    return std::nullopt;
  });
}

void where(NodeTypes& t) {
  t.set_type(0, t.type(1) ? t.type(1) : t.type(2));
  set_broadcast(t, 0, 3);
  const auto condition = t.ints(0);
  const auto a = t.contents(1);
  const auto b = t.contents(2);
  if (!condition || !a || !b) return;
  const std::size_t size = std::max({condition->size(), a->size(), b->size()});
  const auto fits = [&](std::size_t count) { return count == size || count == 1; };
  if (!fits(condition->size()) || !fits(a->size()) || !fits(b->size())) return;
  Contents result;
  for (std::size_t i = 0; i < size; ++i) {
    const bool yes = (*condition)[condition->size() == 1 ? 0 : i] != 0;
    const Contents& from = yes ? *a : *b;
    result.push_back(from[from.size() == 1 ? 0 : i]);
  }
  t.set_contents(0, std::move(result));
}

void boolean_of(NodeTypes& t) {
  t.set_type(0, ElementType::boolean);
  if (t.shape(0) != nullptr) t.set_shape(0, *t.shape(0));
}

void identity(NodeTypes& t) {
  t.copy(0);
  if (const auto contents = t.contents(0)) t.set_contents(0, *contents);
}

void dropout(NodeTypes& t) {
  t.copy(0);
  t.set_type(1, t.opset() >= 10 ? std::optional(ElementType::boolean) : t.type(0));
  if (t.shape(0) != nullptr) t.set_shape(1, *t.shape(0));
}

void cast(NodeTypes& t) {
  const bool by_name = t.is_before(6);
  const auto to = by_name ? parse_element_type(t.node().string_or("to", "")).value_or(ElementType::undefined)
                          : static_cast<ElementType>(t.node().int_or("to", 0));
  if (to != ElementType::undefined) t.set_type(0, to);
  if (t.shape(0) != nullptr) t.set_shape(0, *t.shape(0));
  if (const auto contents = t.contents(0); contents && (to == ElementType::i64 || to == ElementType::i32)) {
    t.set_contents(0, *contents);
  }
}

void cast_like(NodeTypes& t) {
  t.set_type(0, t.type(1));
  if (t.shape(0) != nullptr) t.set_shape(0, *t.shape(0));
}

void quantize(NodeTypes& t) {
  const auto wanted = static_cast<ElementType>(t.node().int_or("output_dtype", 0));
  t.set_type(0, wanted != ElementType::undefined ? std::optional(wanted)
                : t.has_input(2)                 ? t.type(2)
                                                 : std::optional(ElementType::u8));
  if (t.shape(0) != nullptr) t.set_shape(0, *t.shape(0));
}

void dequantize(NodeTypes& t) {
  t.set_type(0, t.type(1));
  if (t.shape(0) != nullptr) t.set_shape(0, *t.shape(0));
}

void dynamic_quantize(NodeTypes& t) {
  t.set_type(0, ElementType::u8);
  t.set_type(1, ElementType::f32);
  t.set_type(2, ElementType::u8);
  if (t.shape(0) != nullptr) t.set_shape(0, *t.shape(0));
  t.set_shape(1, {});
  t.set_shape(2, {});
}

void layer_norm(NodeTypes& t) {
  t.copy(0);
  const auto statistics = static_cast<ElementType>(t.node().int_or("stash_type", 1));
  t.set_type(1, statistics);
  t.set_type(2, statistics);
  if (t.shape(0) == nullptr) return;
  Shape reduced = *t.shape(0);
  for (std::size_t i = t.axis(t.node().int_or("axis", -1), reduced.size()); i < reduced.size(); ++i) reduced[i] = 1;
  t.set_shape(1, reduced);
  t.set_shape(2, reduced);
}

// ---- Matrices

Shape matmul_shape(const NodeTypes& t, Shape a, Shape b) {
  if (a.empty() || b.empty()) t.fail("a scalar input; allowed are tensors of rank 1 and above");
  const bool a_vector = a.size() == 1;
  const bool b_vector = b.size() == 1;
  if (a_vector) a.insert(a.begin(), Dim(1));
  if (b_vector) b.emplace_back(1);
  const Dim& k_a = a.back();
  const Dim& k_b = b[b.size() - 2];
  if (k_a.is_constant() && k_b.is_constant() && k_a.value() != k_b.value()) {
    t.fail(fmt::format("{} columns times {} rows; they have to be equal", k_a.value(), k_b.value()));
  }
  const std::size_t rank = std::max(a.size(), b.size());
  Shape result;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const Dim from_a = i + a.size() >= rank ? a[i + a.size() - rank] : Dim(1);
    const Dim from_b = i + b.size() >= rank ? b[i + b.size() - rank] : Dim(1);
    result.push_back(broadcast(from_a, from_b, t));
  }
  if (!a_vector) result.push_back(a[a.size() - 2]);
  if (!b_vector) result.push_back(b.back());
  return result;
}

void matmul(NodeTypes& t) {
  const std::string& op = t.node().op_type;
  const std::size_t second = op == "QLinearMatMul" ? 3 : 1;
  t.set_type(0, op == "MatMul"          ? (t.type(0) ? t.type(0) : t.type(1))
                : op == "MatMulInteger" ? std::optional(ElementType::i32)
                                        : t.type(7));
  if (t.shape(0) != nullptr && t.shape(second) != nullptr)
    t.set_shape(0, matmul_shape(t, *t.shape(0), *t.shape(second)));
}

void gemm(NodeTypes& t) {
  t.set_type(0, t.type(0) ? t.type(0) : t.type(1));
  const Shape* a = t.shape(0);
  const Shape* b = t.shape(1);
  if (a == nullptr || b == nullptr) return;
  if (a->size() != 2 || b->size() != 2)
    t.fail(fmt::format("inputs of rank {} and {}; allowed is 2", a->size(), b->size()));
  const bool transpose_a = t.node().int_or("transA", 0) != 0;
  const bool transpose_b = t.node().int_or("transB", 0) != 0;
  const Dim& k_a = (*a)[transpose_a ? 0 : 1];
  const Dim& k_b = (*b)[transpose_b ? 1 : 0];
  if (k_a.is_constant() && k_b.is_constant() && k_a.value() != k_b.value()) {
    t.fail(fmt::format("{} columns times {} rows; they have to be equal", k_a.value(), k_b.value()));
  }
  t.set_shape(0, {(*a)[transpose_a ? 1 : 0], (*b)[transpose_b ? 0 : 1]});
}

// ---- Convolution and pooling

std::vector<std::int64_t> list_or(const NodeTypes& t, std::string_view name, std::size_t size, std::int64_t otherwise) {
  std::vector<std::int64_t> list = t.node().ints(name).value_or(std::vector<std::int64_t>(size, otherwise));
  if (list.size() != size) {
    t.fail(fmt::format("attribute `{}`: found {} numbers, allowed are {}", name, list.size(), size));
  }
  return list;
}

/// The windows of a convolution or pooling over the spatial dimensions of `x`.
std::optional<Shape> window_shape(const NodeTypes& t, const Shape& x, const Shape& kernel) {
  const std::size_t spatial = kernel.size();
  if (x.size() != spatial + 2)
    t.fail(fmt::format("an input of rank {}; the kernel asks for {}", x.size(), spatial + 2));
  const auto strides = list_or(t, "strides", spatial, 1);
  const auto dilations = list_or(t, "dilations", spatial, 1);
  const auto pads = list_or(t, "pads", spatial * 2, 0);
  const std::string auto_pad = t.node().string_or("auto_pad", "NOTSET");
  const bool ceil_mode = t.node().int_or("ceil_mode", 0) != 0;
  Shape result;
  for (std::size_t i = 0; i < spatial; ++i) {
    if (strides[i] <= 0 || dilations[i] <= 0) t.fail("strides and dilations have to be 1 or more");
    const Dim& size = x[i + 2];
    const Dim window = (kernel[i] - 1) * dilations[i] + 1;
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      result.push_back(ceil_div(size, strides[i]));
      continue;
    }
    const bool valid = auto_pad == "VALID";
    const Dim room = size + Dim(valid ? 0 : (Dim(pads[i]) + pads[i + spatial])) - window;
    if (room.is_constant() && room.value() < 0) {
      t.fail(fmt::format("a window of {} does not fit into dimension {} ({}) with its padding", window.to_string(),
                         i + 2, size.to_string()));
    }
    if (!ceil_mode) {
      result.push_back(floor_div(room, strides[i]) + 1);
    } else if (room.is_constant()) {
      std::int64_t count = ceil_div(room, strides[i]).value() + 1;
      // A window must not begin beyond the image and its padding in front.
      if (size.is_constant() && (Dim(count - 1) * strides[i]).value() >= (size + (valid ? 0 : pads[i])).value())
        --count;
      result.emplace_back(count);
    } else {
      result.push_back(strides[i] == 1 ? room + 1 : unknown_dim());
    }
  }
  return result;
}

std::optional<Shape> kernel_of(const NodeTypes& t, std::size_t weight_input) {
  if (const auto kernel = t.node().ints("kernel_shape")) return Shape(kernel->begin(), kernel->end());
  const Shape* weight = weight_input == 0 ? nullptr : t.shape(weight_input);
  if (weight == nullptr || weight->size() < 3) return std::nullopt;
  return Shape(weight->begin() + 2, weight->end());
}

void convolution(NodeTypes& t) {
  const std::string& op = t.node().op_type;
  const std::size_t weight = op == "QLinearConv" ? 3 : 1;
  t.set_type(0, op == "Conv" || op == "DeformConv" ? t.type(0)
                : op == "ConvInteger"              ? std::optional(ElementType::i32)
                                                   : t.type(7));
  const auto kernel = kernel_of(t, weight);
  if (t.shape(0) == nullptr || !kernel || t.shape(0)->size() < 2) return;
  const auto spatial = window_shape(t, *t.shape(0), *kernel);
  const Shape* w = t.shape(weight);
  const Dim& channels = (*t.shape(0))[1];
  const std::int64_t group = t.node().int_or("group", 1);
  if (w != nullptr && w->size() > 1 && (*w)[1].is_constant() && channels.is_constant() &&
      (Dim(group) * (*w)[1]).value() != channels.value()) {
    t.fail(fmt::format("{} channels; the weights ask for {}", channels.value(), (Dim(group) * (*w)[1]).value()));
  }
  Shape result{(*t.shape(0))[0], w == nullptr || w->empty() ? unknown_dim() : (*w)[0]};
  result.insert(result.end(), spatial->begin(), spatial->end());
  t.set_shape(0, std::move(result));
}

void conv_transpose(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const auto kernel = kernel_of(t, 1);
  const Shape* x = t.shape(0);
  const Shape* w = t.shape(1);
  if (x == nullptr || w == nullptr || w->size() < 3 || !kernel) return;
  const std::size_t spatial = kernel->size();
  if (x->size() != spatial + 2)
    t.fail(fmt::format("an input of rank {}; the kernel asks for {}", x->size(), spatial + 2));
  const auto strides = list_or(t, "strides", spatial, 1);
  const auto dilations = list_or(t, "dilations", spatial, 1);
  const auto pads = list_or(t, "pads", spatial * 2, 0);
  const auto extra = list_or(t, "output_padding", spatial, 0);
  const auto given = t.node().ints("output_shape");
  const std::string auto_pad = t.node().string_or("auto_pad", "NOTSET");
  Shape result{(*x)[0], (*w)[1] * t.node().int_or("group", 1)};
  for (std::size_t i = 0; i < spatial; ++i) {
    if (given && given->size() >= spatial) {
      result.emplace_back((*given)[given->size() - spatial + i]);
    } else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      result.push_back((*x)[i + 2] * strides[i]);
    } else {
      const Dim padding = auto_pad == "VALID" ? Dim(0) : Dim(pads[i]) + pads[i + spatial];
      const Dim window = ((*kernel)[i] - 1) * dilations[i] + 1;
      result.push_back(((*x)[i + 2] - 1) * strides[i] + (window + extra[i] - padding));
    }
  }
  t.set_shape(0, std::move(result));
}

void pool(NodeTypes& t) {
  t.set_type(0, t.type(0));
  t.set_type(1, ElementType::i64);
  const auto kernel = kernel_of(t, 0);
  if (t.shape(0) == nullptr || !kernel || t.shape(0)->size() < 2) return;
  const auto spatial = window_shape(t, *t.shape(0), *kernel);
  Shape result{(*t.shape(0))[0], (*t.shape(0))[1]};
  result.insert(result.end(), spatial->begin(), spatial->end());
  t.set_shape(0, result);
  t.set_shape(1, std::move(result));
}

void global_pool(NodeTypes& t) {
  t.set_type(0, t.type(0));
  if (t.shape(0) == nullptr) return;
  Shape result = *t.shape(0);
  for (std::size_t i = 2; i < result.size(); ++i) result[i] = 1;
  t.set_shape(0, std::move(result));
}

// ---- Reductions

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

// ---- Shapes

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
        t.fail(fmt::format("the new shape copies dimension {} of rank {}", i, x->size()));
      result.push_back(x == nullptr ? unknown_dim() : (*x)[i]);
    } else if (dim == Dim(-1)) {
      if (open) t.fail("the new shape leaves two dimensions open; allowed is one -1");
      open = i;
      result.push_back(unknown_dim());
    } else {
      if (dim.is_constant() && dim.value() < 0)
        t.fail(fmt::format("the new shape holds {}; allowed are -1 and above", dim.value()));
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
        t.fail(fmt::format("{} has {} elements, which the new shape does not hold", to_string(*x), all.constant));
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
  if (axis < -rank || axis > rank) t.fail(fmt::format("axis {}; allowed are {} to {}", axis, -rank, rank));
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
      if (!dim.is_constant()) return;  // whether it goes depends on its value
      drop[i] = dim.value() == 1;
    } else if (drop[i] && dim.is_constant() && dim.value() != 1) {
      t.fail(fmt::format("dimension {} is {}; only 1 can be dropped", i, dim.value()));
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

void transpose(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  if (x == nullptr) return;
  const auto order = t.node().ints("perm");
  Shape result(x->rbegin(), x->rend());
  if (order) {
    if (order->size() != x->size()) {
      t.fail(fmt::format("attribute `perm`: found {} numbers, allowed are {}", order->size(), x->size()));
    }
    for (std::size_t i = 0; i < order->size(); ++i) result[i] = (*x)[t.axis((*order)[i], x->size())];
  }
  t.set_shape(0, std::move(result));
}

void concat(NodeTypes& t) {
  const std::size_t count = t.node().inputs.size();
  std::optional<ElementType> type;
  for (std::size_t i = 0; i < count && !type; ++i) type = t.type(i);
  t.set_type(0, type);
  Contents contents;
  bool known = true;
  for (std::size_t i = 0; i < count; ++i) {
    if (t.shape(i) == nullptr) return;
    if (i > 0 && t.shape(i)->size() != t.shape(0)->size()) t.fail("inputs of different ranks");
    const auto part = t.contents(i);
    known = known && part.has_value();
    if (known) contents.insert(contents.end(), part->begin(), part->end());
  }
  if (count == 0) return;
  Shape result = *t.shape(0);
  const std::size_t axis = t.axis(t.node().int_or("axis", 1), result.size());
  for (std::size_t i = 1; i < count; ++i) {
    const Shape& part = *t.shape(i);
    for (std::size_t k = 0; k < result.size(); ++k) {
      if (k == axis) {
        result[k] = bounded(result[k] + part[k]);
        continue;
      }
      if (result[k].is_constant() && part[k].is_constant() && result[k].value() != part[k].value()) {
        t.fail(fmt::format("dimension {} is {} and {}; they have to be equal", k, result[k].value(), part[k].value()));
      }
      if (part[k].is_constant() || is_unknown(result[k])) result[k] = part[k];
    }
  }
  const bool one_dimensional = result.size() == 1;
  t.set_shape(0, std::move(result));
  if (known && one_dimensional) t.set_contents(0, std::move(contents));
}

void split(NodeTypes& t) {
  const std::size_t count = t.node().outputs.size();
  for (std::size_t i = 0; i < count; ++i) t.set_type(i, t.type(0));
  const Shape* x = t.shape(0);
  if (x == nullptr || count == 0) return;
  const std::size_t axis = t.axis(t.node().int_or("axis", 0), x->size());
  const bool given = t.node().attribute("split") != nullptr || t.has_input(1);
  const auto sizes = t.ints("split", 1);
  if (sizes && sizes->size() != count) t.fail(fmt::format("{} sizes for {} outputs", sizes->size(), count));
  const Dim& size = (*x)[axis];
  const auto parts = static_cast<std::int64_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    Shape result = *x;
    if (sizes) {
      result[axis] = (*sizes)[i];
    } else if (given) {
      result[axis] = unknown_dim();
    } else {
      const Dim chunk = ceil_div(size, parts);
      const bool last = i + 1 == count;
      result[axis] = last && !(size.is_constant() && size.value() % parts == 0) ? size - chunk * (parts - 1) : chunk;
    }
    t.set_shape(i, std::move(result));
  }
}

void slice(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  if (x == nullptr) return;
  const auto starts = t.ints("starts", 1);
  const auto ends_known = t.node().attribute("ends") != nullptr ? std::nullopt : t.contents(2);
  const auto ends = t.ints("ends", 2);
  const bool axes_given = t.node().attribute("axes") != nullptr || t.has_input(3);
  auto axes = t.ints("axes", 3);
  auto steps = t.ints(4);
  Shape result = *x;
  if (!starts || (axes_given && !axes) || (t.has_input(4) && !steps)) {
    // Without the axes every dimension may shrink.
    for (std::size_t i = 0; i < result.size(); ++i) {
      const bool may_change =
          !axes || std::any_of(axes->begin(), axes->end(), [&](auto a) { return t.axis(a, x->size()) == i; });
      if (may_change) result[i] = unknown_dim();
    }
    t.set_shape(0, std::move(result));
    return;
  }
  if (!axes) {
    axes.emplace();
    for (std::size_t i = 0; i < starts->size(); ++i) axes->push_back(static_cast<std::int64_t>(i));
  }
  if (!steps) steps.emplace(starts->size(), 1);
  if (axes->size() != starts->size() || steps->size() != starts->size() || (ends && ends->size() != starts->size())) {
    t.fail("starts, ends, axes and steps of different lengths");
  }
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::size_t axis = t.axis((*axes)[i], x->size());
    const std::int64_t step = (*steps)[i];
    if (step == 0) t.fail("a step of 0");
    const Dim& size = (*x)[axis];
    if (!ends) {
      const bool prefix = ends_known && ends_known->size() == starts->size() && (*starts)[i] == 0 && step == 1;
      result[axis] = prefix ? min(size, (*ends_known)[i]) : unknown_dim();
      continue;
    }
    const std::int64_t start = (*starts)[i];
    const std::int64_t end = (*ends)[i];
    if (size.is_constant()) {
      const std::int64_t n = size.value();
      const auto clamp = [&](std::int64_t v, std::int64_t low, std::int64_t high) {
        return std::clamp(v < 0 ? (v < -n ? -1 : v + n) : v, low, high);
      };
      const std::int64_t from = step > 0 ? clamp(start, 0, n) : clamp(start, -1, n - 1);
      const std::int64_t to = step > 0 ? clamp(end, 0, n) : clamp(end, -1, n - 1);
      const Dim length = ceil_div(Dim(to) - from, step);
      result[axis] = std::max<std::int64_t>(0, length.value());
    } else if ((step == 1 && start == 0 && end >= INT32_MAX) || (step == -1 && start == -1 && end < -INT32_MAX)) {
      result[axis] = size;
    } else if (step == 1 && start >= 0 && end < 0) {
      result[axis] = max(0, size + end - start);
    } else if (step == 1 && start >= 0 && end >= INT32_MAX) {
      result[axis] = max(0, size - start);
    } else if (step == 1 && start < 0 && end >= INT32_MAX) {
      result[axis] = min(size, Dim(0) - start);
    } else if (step == 1 && start >= 0 && end >= start) {
      result[axis] = start == 0 ? min(size, end) : max(0, min(size, end) - start);
    } else {
      result[axis] = unknown_dim();
    }
  }
  const auto contents = t.contents(0);
  if (contents && x->size() == 1 && starts->size() == 1 && ends) {
    const auto n = static_cast<std::int64_t>(contents->size());
    const std::int64_t step = (*steps)[0];
    const auto wrap = [&](std::int64_t v) { return v < 0 ? (v < -n ? -1 : v + n) : v; };
    Contents part;
    const std::int64_t from = step > 0 ? std::clamp<std::int64_t>(wrap((*starts)[0]), 0, n)
                                       : std::clamp<std::int64_t>(wrap((*starts)[0]), -1, n - 1);
    const std::int64_t to = step > 0 ? std::clamp<std::int64_t>(wrap((*ends)[0]), 0, n)
                                     : std::clamp<std::int64_t>(wrap((*ends)[0]), -1, n - 1);
    if (step >= -n && step <= n) {
      for (std::int64_t i = from; step > 0 ? i < to : i > to; i += step)
        part.push_back((*contents)[static_cast<std::size_t>(i)]);
      t.set_contents(0, std::move(part));
    }
  }
  t.set_shape(0, std::move(result));
}

void gather(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  const Shape* indices = t.shape(1);
  if (x == nullptr || indices == nullptr) return;
  const std::size_t axis = t.axis(t.node().int_or("axis", 0), x->size());
  Shape result(x->begin(), x->begin() + static_cast<std::ptrdiff_t>(axis));
  result.insert(result.end(), indices->begin(), indices->end());
  result.insert(result.end(), x->begin() + static_cast<std::ptrdiff_t>(axis) + 1, x->end());
  t.set_shape(0, std::move(result));
  const auto contents = t.contents(0);
  const auto wanted = t.ints(1);
  if (!contents || !wanted || x->size() != 1) return;
  Contents picked;
  const auto n = static_cast<std::int64_t>(contents->size());
  for (const std::int64_t index : *wanted) {
    if (index < -n || index >= n) t.fail(fmt::format("index {} of a tensor of {} elements", index, n));
    picked.push_back((*contents)[static_cast<std::size_t>(index < 0 ? index + n : index)]);
  }
  t.set_contents(0, std::move(picked));
}

void gather_elements(NodeTypes& t) {
  t.set_type(0, t.type(0));
  if (t.shape(1) != nullptr) t.set_shape(0, *t.shape(1));
}

void gather_nd(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  const Shape* indices = t.shape(1);
  if (x == nullptr || indices == nullptr || indices->empty() || !indices->back().is_constant()) return;
  const std::int64_t taken = (indices->back() + t.node().int_or("batch_dims", 0)).value();
  if (taken < 0 || taken > static_cast<std::int64_t>(x->size())) t.fail("indices longer than the data's rank");
  Shape result(indices->begin(), indices->end() - 1);
  result.insert(result.end(), x->begin() + taken, x->end());
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
    t.fail(fmt::format("{} repeats for rank {}", repeats->size(), x->size()));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = repeats ? result[i] * (*repeats)[i] : unknown_dim();
  t.set_shape(0, std::move(result));
}

void pad(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  if (x == nullptr) return;
  std::optional<Contents> pads;
  if (const auto given = t.node().ints(t.is_before(2) ? "paddings" : "pads")) {
    pads.emplace(given->begin(), given->end());
  } else {
    pads = t.contents(1);
  }
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < x->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  Shape result = *x;
  if (t.has_input(3)) {
    const auto given = t.ints(3);
    if (!given) pads.reset();
    if (given) axes = *given;
  }
  if (pads && pads->size() != axes.size() * 2) t.fail(fmt::format("{} pads for {} axes", pads->size(), axes.size()));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = t.axis(axes[i], x->size());
    result[axis] = pads ? result[axis] + ((*pads)[i] + (*pads)[i + axes.size()]) : unknown_dim();
  }
  t.set_shape(0, std::move(result));
}

void resize(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  if (x == nullptr) return;
  const bool has_sizes = t.node().op_type == "Resize" && t.opset() >= 11;
  const std::size_t scales_input = has_sizes ? 2 : 1;
  std::vector<std::int64_t> axes = t.node().ints("axes").value_or(std::vector<std::int64_t>{});
  if (axes.empty()) {
    for (std::size_t i = 0; i < x->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  auto scales = t.numbers(scales_input);
  if (const auto given = t.node().floats("scales")) scales.emplace(given->begin(), given->end());
  const auto sizes = has_sizes ? t.contents(3) : std::nullopt;
  const bool keeps_ratio = t.node().string_or("keep_aspect_ratio_policy", "stretch") != "stretch";
  Shape result = *x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = t.axis(axes[i], x->size());
    Dim& dim = result[axis];
    if (sizes && sizes->size() == axes.size() && !keeps_ratio) {
      dim = (*sizes)[i];
    } else if (scales && scales->size() == axes.size()) {
      const double scale = (*scales)[i];
      if (!(scale > 0)) t.fail(fmt::format("scale {}; allowed are numbers above 0", scale));
      if (dim.is_constant()) {
        const double size = std::floor(static_cast<double>(dim.value()) * static_cast<float>(scale));
        if (!(size < 9e18)) t.fail("the new size exceeds 64 bits");
        dim = static_cast<std::int64_t>(size);
      } else if (scale == std::floor(scale) && scale < 1e9) {
        dim = dim * static_cast<std::int64_t>(scale);
      } else if (1 / scale == std::floor(1 / scale) && 1 / scale < 1e9) {
        dim = floor_div(dim, static_cast<std::int64_t>(1 / scale));
      } else {
        dim = unknown_dim();
      }
    } else {
      dim = unknown_dim();
    }
  }
  t.set_shape(0, std::move(result));
}

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
    if (dim.is_constant() && dim.value() < 0) t.fail(fmt::format("dimension {}; allowed are 0 and above", dim.value()));
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
    // Engines do not check it and read beyond the end.
    if (wanted.is_constant() && dim.is_constant() && (wanted.value() < 0 || wanted.value() > dim.value())) {
      t.fail(fmt::format("k is {}; allowed are 0 to {}", wanted.value(), dim.value()));
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

void non_zero(NodeTypes& t) {
  t.set_type(0, ElementType::i64);
  t.set_shape(
      0, {t.shape(0) == nullptr ? unknown_dim() : Dim(static_cast<std::int64_t>(t.shape(0)->size())), unknown_dim()});
}

void depth_and_space(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  const std::int64_t block = t.node().int_or("blocksize", 0);
  if (x == nullptr || x->size() != 4) return;
  if (block < 1 || block > 1'000'000)
    t.fail(fmt::format("attribute `blocksize`: found {}, allowed are 1 to 1000000", block));
  const Dim area = Dim(block) * block;
  if (t.node().op_type == "DepthToSpace") {
    t.set_shape(0, {(*x)[0], floor_div((*x)[1], area), (*x)[2] * block, (*x)[3] * block});
  } else {
    t.set_shape(0, {(*x)[0], (*x)[1] * area, floor_div((*x)[2], block), floor_div((*x)[3], block)});
  }
}

void eye_like(NodeTypes& t) {
  const auto dtype = static_cast<ElementType>(t.node().int_or("dtype", 0));
  t.set_type(0, dtype == ElementType::undefined ? t.type(0) : std::optional(dtype));
  if (t.shape(0) != nullptr) t.set_shape(0, *t.shape(0));
}

void random(NodeTypes& t) {
  t.set_type(0, static_cast<ElementType>(t.node().int_or("dtype", 1)));
  if (const auto shape = t.node().ints("shape")) t.set_shape(0, Shape(shape->begin(), shape->end()));
}

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

void recurrent(NodeTypes& t) {
  for (std::size_t i = 0; i < 3; ++i) t.set_type(i, t.type(0));
  const Shape* x = t.shape(0);
  const std::int64_t hidden = t.node().int_or("hidden_size", 0);
  if (x == nullptr || x->size() != 3 || hidden <= 0) return;
  const bool both = t.node().string_or("direction", "forward") == "bidirectional";
  const Dim directions(both ? 2 : 1);
  if (t.node().int_or("layout", 0) == 0) {
    t.set_shape(0, {(*x)[0], directions, (*x)[1], hidden});
    for (std::size_t i = 1; i < 3; ++i) t.set_shape(i, {directions, (*x)[1], hidden});
  } else {
    t.set_shape(0, {(*x)[0], (*x)[1], directions, hidden});
    for (std::size_t i = 1; i < 3; ++i) t.set_shape(i, {(*x)[0], directions, hidden});
  }
}

void determinant(NodeTypes& t) {
  t.set_type(0, t.type(0));
  if (t.shape(0) != nullptr && t.shape(0)->size() >= 2)
    t.set_shape(0, Shape(t.shape(0)->begin(), t.shape(0)->end() - 2));
}

const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> table = [] {
    std::map<std::string_view, Rule> map;
    const auto add = [&](Rule rule, std::initializer_list<std::string_view> names) {
      for (const std::string_view name : names) map.emplace(name, rule);
    };
    add(same, {"Abs",
               "Acos",
               "Acosh",
               "Asin",
               "Asinh",
               "Atan",
               "Atanh",
               "BatchNormalization",
               "BitwiseNot",
               "Ceil",
               "Celu",
               "Clip",
               "Cos",
               "Cosh",
               "Elu",
               "Erf",
               "Exp",
               "Floor",
               "Gelu",
               "GroupNormalization",
               "HardSigmoid",
               "HardSwish",
               "Hardmax",
               "InstanceNormalization",
               "LRN",
               "LeakyRelu",
               "Log",
               "LogSoftmax",
               "LpNormalization",
               "MeanVarianceNormalization",
               "Mish",
               "Neg",
               "PRelu",
               "RMSNormalization",
               "Reciprocal",
               "Relu",
               "ReverseSequence",
               "RotaryEmbedding",
               "Round",
               "Scatter",
               "ScatterElements",
               "ScatterND",
               "Selu",
               "Shrink",
               "Sigmoid",
               "Sign",
               "Sin",
               "Sinh",
               "Softmax",
               "Softplus",
               "Softsign",
               "Sqrt",
               "Swish",
               "Tan",
               "Tanh",
               "TensorScatter",
               "ThresholdedRelu",
               "Trilu"});
    add(arithmetic, {"Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Max", "Mean", "Min",
                     "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Xor"});
    add(comparison, {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"});
    add(boolean_of, {"IsInf", "IsNaN", "Not"});
    add(where, {"Where"});
    add(identity, {"Identity"});
    add(dropout, {"Dropout"});
    add(cast, {"Cast"});
    add(cast_like, {"CastLike"});
    add(quantize, {"QuantizeLinear"});
    add(dequantize, {"DequantizeLinear"});
    add(dynamic_quantize, {"DynamicQuantizeLinear"});
    add(layer_norm, {"LayerNormalization"});
    add(matmul, {"MatMul", "MatMulInteger", "QLinearMatMul"});
    add(gemm, {"Gemm"});
    add(convolution, {"Conv", "ConvInteger", "DeformConv", "QLinearConv"});
    add(conv_transpose, {"ConvTranspose"});
    add(pool, {"AveragePool", "LpPool", "MaxPool"});
    add(global_pool, {"GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"});
    add(reduction, {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
                    "ReduceProd", "ReduceSum", "ReduceSumSquare"});
    add(arg_reduction, {"ArgMax", "ArgMin"});
    add(reshape, {"Reshape"});
    add(flatten, {"Flatten"});
    add(squeeze, {"Squeeze"});
    add(unsqueeze, {"Unsqueeze"});
    add(transpose, {"Transpose"});
    add(concat, {"Concat"});
    add(split, {"Split"});
    add(slice, {"Slice"});
    add(gather, {"Gather"});
    add(gather_elements, {"GatherElements"});
    add(gather_nd, {"GatherND"});
    add(expand, {"Expand"});
    add(tile, {"Tile"});
    add(pad, {"Pad"});
    add(resize, {"Resize", "Upsample"});
    add(shape_of, {"Shape"});
    add(size_of, {"Size"});
    add(constant, {"Constant"});
    add(constant_of_shape, {"ConstantOfShape"});
    add(range, {"Range"});
    add(one_hot, {"OneHot"});
    add(top_k, {"TopK"});
    add(cumulative, {"CumProd", "CumSum"});
    add(non_zero, {"NonZero"});
    add(depth_and_space, {"DepthToSpace", "SpaceToDepth"});
    add(eye_like, {"Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike"});
    add(random, {"RandomNormal", "RandomUniform"});
    add(non_max_suppression, {"NonMaxSuppression"});
    add(roi_align, {"RoiAlign"});
    add(max_roi_pool, {"MaxRoiPool"});
    add(grid_sample, {"GridSample"});
    add(recurrent, {"GRU", "LSTM", "RNN"});
    add(determinant, {"Det"});
    return map;
  }();
  return table;
}

}  // namespace

bool apply_shape_rule(NodeTypes& types) {
  const auto found = rules().find(types.node().op_type);
  if (found == rules().end()) return false;
  found->second(types);
  return true;
}

}  // namespace graft
