// Shape rules of elementwise operators, and of other operators that keep the shape of their input.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "onnx/shape_rules/table.hpp"

namespace graft::onnx::shape_rules {
namespace {

void same(NodeTypes& t) { t.copy(0); }

/// Copies the type and the shape of the input to the output. Throws Error if the input does not have the axis `axis`.
void along_axis(NodeTypes& t) {
  t.copy(0);
  // Before opset 13 these operators flatten the axes before `axis` to rows and the remaining axes to columns.
  const bool makes_rows = t.is_before(13) && t.node().op_type != "LpNormalization";
  if (t.shape(0) == nullptr || makes_rows || t.shape(0)->empty()) return;
  static_cast<void>(t.axis(t.node().int_or("axis", -1), t.shape(0)->size()));
}

/// Throws Error unless an input is a vector with one number per channel.
void check_is_per_channel(const NodeTypes& t, std::size_t input) {
  const Shape* x = t.shape(0);
  const Shape* list = t.shape(input);
  if (x == nullptr || x->size() < 2 || list == nullptr) return;
  if (list->size() != 1) {
    t.fail(fmt::format("its input '{}' has rank {}; it must have rank 1", t.node().input(input)->name, list->size()));
  }
  const Dim& channels = (*x)[1];
  const Dim& count = list->front();
  if (!channels.is_constant() || !count.is_constant() || channels.value() == count.value()) return;
  t.fail(fmt::format("its input '{}' has {} elements; it must have one for each of the {} channels",
                     t.node().input(input)->name, count.value(), channels.value()));
}

/// Throws Error if an input cannot be broadcast to the last axes of the first input.
void check_broadcasts(NodeTypes& t, std::size_t input) {
  const Shape* x = t.shape(0);
  const Shape* other = t.shape(input);
  if (x == nullptr || other == nullptr || other->size() > x->size()) return;
  const std::size_t shift = x->size() - other->size();
  for (std::size_t i = 0; i < other->size(); ++i) static_cast<void>(broadcast((*x)[shift + i], (*other)[i], t));
}

void batch_normalization(NodeTypes& t) {
  t.copy(0);
  for (std::size_t i = 1; i < 5; ++i) check_is_per_channel(t, i);
}

void instance_normalization(NodeTypes& t) {
  t.copy(0);
  for (std::size_t i = 1; i < 3; ++i) check_is_per_channel(t, i);
}

void p_relu(NodeTypes& t) {
  t.copy(0);
  if (!t.is_before(7)) check_broadcasts(t, 1);
}

void set_broadcast(NodeTypes& t, std::size_t first, std::size_t last) {
  if (t.is_before(7)) {  // The second input is broadcast to the shape of the first.
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

/// Sets the values of the output to the results of `f` for each pair of elements if the values of both inputs are
/// known. Both inputs must have the same shape, or one of them must be a single element, which is paired with each
/// element of the other input.
template <class F>
void follow_contents(NodeTypes& t, F&& f) {
  const auto a = t.contents(0);
  const auto b = t.contents(1);
  if (!a || !b || a->empty() || b->empty()) return;
  if (a->size() != 1 && b->size() != 1) {
    const bool is_same = t.shape(0) != nullptr && t.shape(1) != nullptr && *t.shape(0) == *t.shape(1);
    if (a->size() != b->size() || !is_same) return;
  }
  Contents result;
  for (std::size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
    const std::optional<Dim> value = f((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!value) return;
    result.push_back(*value);
  }
  t.set_contents(0, std::move(result));
}

/// Returns a dimension that differs from `dim` by a multiple of `by` and whose expression is shorter, if there is one.
Dim congruent(const Dim& dim, std::int64_t by) {
  switch (dim.kind()) {
    case Dim::Kind::constant: return dim.value() - (floor_div(dim, by) * by).value();
    case Dim::Kind::multiply: {
      const bool is_multiple = dim.right().is_constant() && dim.right().value() % by == 0;
      return is_multiple ? Dim(0) : dim;
    }
    case Dim::Kind::add: return congruent(dim.left(), by) + congruent(dim.right(), by);
    case Dim::Kind::subtract: return congruent(dim.left(), by) - congruent(dim.right(), by);
    default: return dim;
  }
}

/// Returns the remainder of the division by a positive constant. Exporters compute remainders of remainders (the
/// padding of a dilated convolution), whose expressions would be too long to be tracked.
std::optional<Dim> remainder(const Dim& dividend, const Dim& divisor) {
  if (!divisor.is_constant() || divisor.value() <= 0) return std::nullopt;
  const Dim rest = congruent(dividend, divisor.value());
  return rest - floor_div(rest, divisor) * divisor;
}

void arithmetic(NodeTypes& t) {
  // The exponent of Pow and the shift of BitShift may have another type than the result.
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
    if (op == "Mod" && t.node().int_or("fmod", 0) == 0) return remainder(a, b);
    if (op != "Div") return std::nullopt;
    if (a.is_constant() && b.is_constant()) {  // ONNX rounds integer division toward zero.
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
    const auto differs = [](const Dim& symbol, const Dim& number) {  // A dimension is never negative.
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

void bit_cast(NodeTypes& t) {
  const auto to = static_cast<ElementType>(t.node().int_or("to", 0));
  if (to != ElementType::undefined) t.set_type(0, to);
  if (t.shape(0) != nullptr) t.set_shape(0, *t.shape(0));
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
  for (const std::size_t parameter : {1, 2}) check_broadcasts(t, parameter);
  t.set_shape(1, reduced);
  t.set_shape(2, reduced);
}

}  // namespace

void add_elementwise(Table& table) {
  add(table, same,
      {"GroupNormalization", "LRN", "MeanVarianceNormalization", "RMSNormalization", "ReverseSequence",
       "RotaryEmbedding", "Scatter", "ScatterElements", "ScatterND", "TensorScatter", "Trilu"});
  add(table, boolean_of, {"IsInf", "IsNaN", "Not", "RegexFullMatch"});
  add(table, where, {"Where"});
  add(table, identity, {"Identity"});
  add(table, dropout, {"Dropout"});
  add(table, cast, {"Cast"});
  add(table, bit_cast, {"BitCast"});
  add(table, cast_like, {"CastLike"});
  add(table, quantize, {"QuantizeLinear"});
  add(table, dequantize, {"DequantizeLinear"});
  add(table, dynamic_quantize, {"DynamicQuantizeLinear"});
  add(table, layer_norm, {"LayerNormalization"});
  add(table, along_axis, {"Hardmax", "LogSoftmax", "LpNormalization", "Softmax"});
  add(table, batch_normalization, {"BatchNormalization"});
  add(table, instance_normalization, {"InstanceNormalization"});
  add(table, p_relu, {"PRelu"});
  add(table, comparison, trait::compares);
  add(table, arithmetic, trait::broadcasting);
  add(table, same, trait::elementwise);
}

}  // namespace graft::onnx::shape_rules
