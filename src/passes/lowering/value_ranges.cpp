// Follows the values back to constants, booleans and bytes, through at most a few nodes.
#include "passes/lowering/value_ranges.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "onnx/known_sizes.hpp"
#include "onnx/schema.hpp"

namespace graft::passes {
namespace {

using Range = std::optional<ValueRange>;

constexpr int most_steps = 256;  // so that neither a long chain nor many readers of one value take long

Range find(const onnx::Value* value, int& steps);

Range union_of(const Range& a, const Range& b) {
  if (!a || !b) return std::nullopt;
  return ValueRange{std::min(a->low, b->low), std::max(a->high, b->high)};
}

Range union_of_inputs(const onnx::Node& node, std::size_t first, std::size_t end, int& steps) {
  Range all = find(node.input(first), steps);
  for (std::size_t i = first + 1; i < end && all; ++i) all = union_of(all, find(node.input(i), steps));
  return all;
}

Range constant_range(const onnx::TensorData& constant) {
  const auto numbers = constant.numbers();
  if (!numbers || numbers->empty()) return std::nullopt;
  constexpr double most = 9e15;  // f64 holds integers below this exactly
  const auto [low, high] = std::minmax_element(numbers->begin(), numbers->end());
  if (!(*low > -most) || !(*high < most)) return std::nullopt;
  return ValueRange{static_cast<std::int64_t>(std::floor(*low)), static_cast<std::int64_t>(std::ceil(*high))};
}

/// Applies `combine` to each bound of `a` and each bound of `b`, and returns the smallest range that contains the four
/// results, or nothing if one overflows. `combine` is like __builtin_add_overflow: it stores the result and returns
/// whether it overflowed.
template <class Combine>
Range corners(const ValueRange& a, const ValueRange& b, const Combine& combine) {
  Range range;
  for (const std::int64_t left : {a.low, a.high}) {
    for (const std::int64_t right : {b.low, b.high}) {
      std::int64_t result = 0;
      if (combine(left, right, &result)) return std::nullopt;
      range = range ? union_of(range, ValueRange{result, result}) : ValueRange{result, result};
    }
  }
  return range;
}

Range pair_range(const onnx::Node& node, const ValueRange& a, const ValueRange& b) {
  if (node.is("Add")) return corners(a, b, [](auto x, auto y, auto* r) { return __builtin_add_overflow(x, y, r); });
  if (node.is("Sub")) return corners(a, b, [](auto x, auto y, auto* r) { return __builtin_sub_overflow(x, y, r); });
  if (node.is("Mul")) return corners(a, b, [](auto x, auto y, auto* r) { return __builtin_mul_overflow(x, y, r); });
  if (node.is("Max")) return ValueRange{std::max(a.low, b.low), std::max(a.high, b.high)};
  if (node.is("Min")) return ValueRange{std::min(a.low, b.low), std::min(a.high, b.high)};
  if (!node.input(0)->type || !onnx::is_integer(*node.input(0)->type)) return std::nullopt;
  if (node.is("Div") && a.low >= 0 && b.low > 0) return ValueRange{a.low / b.high, a.high / b.low};
  return std::nullopt;
}

/// Returns how many elements a reduction combines into one, or nothing if a size or the axes are not known.
std::optional<std::int64_t> reduced_count(const onnx::Node& node) {
  const onnx::Value* data = node.input(0);
  if (data == nullptr || !data->shape) return std::nullopt;
  const bool has_input = node.input(1) != nullptr;
  const auto axes = has_input ? onnx::constant_ints(node.input(1)) : node.ints("axes");
  if (has_input && !axes) return std::nullopt;
  std::int64_t count = 1;
  const auto multiply = [&](std::int64_t axis) {
    const auto size = onnx::known_size(*data->shape, axis);
    return size && !__builtin_mul_overflow(count, *size, &count);
  };
  if (axes && !axes->empty()) {
    return std::all_of(axes->begin(), axes->end(), multiply) ? std::optional(count) : std::nullopt;
  }
  if (node.int_or("noop_with_empty_axes", 0) != 0) return 1;
  for (std::size_t axis = 0; axis < data->shape->size(); ++axis) {
    if (!multiply(static_cast<std::int64_t>(axis))) return std::nullopt;
  }
  return count;
}

Range clip_range(const onnx::Node& node) {
  const auto bound = [&](std::size_t i) {
    const auto constant = node.input(i) == nullptr ? std::nullopt : node.input(i)->constant();
    return constant ? constant_range(*constant) : std::nullopt;
  };
  const Range low = bound(1);
  const Range high = bound(2);
  return low && high && low->low <= high->high ? Range(ValueRange{low->low, high->high}) : std::nullopt;
}

Range sum_range(const onnx::Node& node, int& steps) {
  const Range each = find(node.input(0), steps);
  const auto count = reduced_count(node);
  if (!each || !count) return std::nullopt;
  return corners(*each, ValueRange{*count, *count},
                 [](auto x, auto y, auto* r) { return __builtin_mul_overflow(x, y, r); });
}

/// Returns the range of the indices that an ArgMax or ArgMin returns, or nothing if the size of its axis is not known.
Range position_range(const onnx::Node& node) {
  const auto size = onnx::known_size(node.input(0), node.int_or("axis", 0));
  return size && *size > 0 ? Range(ValueRange{0, *size - 1}) : std::nullopt;
}

Range computed_range(const onnx::Value& value, int& steps) {
  const onnx::Node& node = *value.producer;
  if (!node.domain.empty() || node.inputs.empty()) return std::nullopt;
  if (node.is("Clip")) return clip_range(node);
  if (onnx::is_any_of(node, {"Round", "Floor", "Ceil", "Cast", "Identity", "ReduceMax", "ReduceMin"})) {
    return find(node.input(0), steps);
  }
  if (onnx::is_any_of(node, {"ArgMax", "ArgMin"})) return position_range(node);
  if (node.is("ReduceSum")) return sum_range(node, steps);
  if (node.is("Concat")) return union_of_inputs(node, 0, node.inputs.size(), steps);
  if (node.is("Where")) return union_of_inputs(node, 1, 3, steps);
  if (has_trait(node, onnx::trait::moves_data)) return find(node.input(0), steps);
  if (node.inputs.size() != 2) return std::nullopt;
  if (node.is("Mod") && node.int_or("fmod", 0) == 0 && value.type && onnx::is_integer(*value.type)) {
    const Range divisor = find(node.input(1), steps);
    if (divisor && divisor->low > 0) return ValueRange{0, divisor->high - 1};
  }
  const Range a = find(node.input(0), steps);
  const Range b = a ? find(node.input(1), steps) : std::nullopt;
  return b ? pair_range(node, *a, *b) : std::nullopt;
}

Range find(const onnx::Value* value, int& steps) {
  if (value == nullptr || !value->type) return std::nullopt;
  if (const auto constant = value->constant()) return constant_range(*constant);
  Range by_type;
  if (value->type == onnx::ElementType::boolean) return ValueRange{0, 1};
  if (value->type == onnx::ElementType::u8) by_type = bytes;
  const Range computed = value->producer != nullptr && steps-- > 0 ? computed_range(*value, steps) : std::nullopt;
  if (computed && by_type) return computed->is_within(*by_type) ? computed : by_type;
  if (computed && value->type == onnx::ElementType::i32) {
    constexpr std::int64_t lowest = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t highest = std::numeric_limits<std::int32_t>::max();
    return computed->is_within({lowest, highest}) ? computed : std::nullopt;  // a larger one may have wrapped around
  }
  return computed ? computed : by_type;
}

}  // namespace

std::optional<ValueRange> find_range(const onnx::Value& value) {
  int steps = most_steps;
  return find(&value, steps);
}

}  // namespace graft::passes
