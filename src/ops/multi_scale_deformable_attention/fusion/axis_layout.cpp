// Computes the layout of axes after nodes that move elements.
#include "ops/multi_scale_deformable_attention/fusion/axis_layout.hpp"

#include <algorithm>
#include <utility>

namespace graft::passes::deformable_attention {
namespace {

/// Removes factors of size 1, and merges neighboring factors that one factor can represent.
std::vector<AxisFactor> simplified(const std::vector<AxisFactor>& factors) {
  std::vector<AxisFactor> result;
  for (const AxisFactor& factor : factors) {
    if (factor.size == 1) continue;
    const bool is_next = !result.empty() && result.back().axis == factor.axis && factor.size > 0 &&
                         result.back().stride == factor.size * factor.stride;
    if (is_next) {
      result.back() = {factor.axis, factor.stride, result.back().size * factor.size};
    } else {
      result.push_back(factor);
    }
  }
  return result;
}

}  // namespace

std::int64_t fixed_size(const onnx::Value* value, std::size_t axis) {
  if (value == nullptr || !value->shape || axis >= value->shape->size()) return 0;
  const Dim& dim = (*value->shape)[axis];
  return dim.is_constant() ? dim.value() : 0;
}

std::size_t rank_of(const onnx::Value* value) { return value != nullptr && value->shape ? value->shape->size() : 0; }

AxisLayout::AxisLayout(Axes axes, Starts starts) : axes_(std::move(axes)), starts_(starts) {
  for (auto& factors : axes_) factors = simplified(factors);
}

std::optional<AxisLayout> AxisLayout::of(const onnx::Value& value, const std::vector<std::size_t>& names) {
  if (rank_of(&value) != names.size()) return std::nullopt;
  Axes axes(names.size());
  std::array<std::int64_t, max_axes> strides{};
  strides.fill(1);
  for (std::size_t i = names.size(); i-- > 0;) {
    const std::int64_t size = fixed_size(&value, i);
    std::int64_t& stride = strides[names[i]];
    const bool is_part = std::count(names.begin(), names.end(), names[i]) > 1;
    if (is_part && size == 0) return std::nullopt;
    axes[i] = {{names[i], stride, size}};
    stride *= size;
  }
  return AxisLayout(std::move(axes), {});
}

std::optional<AxisLayout> AxisLayout::reshaped(const Shape& shape) const {
  std::vector<AxisFactor> left;
  for (const auto& factors : axes_) left.insert(left.end(), factors.begin(), factors.end());
  Axes axes(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    std::vector<AxisFactor>& factors = axes[i];
    if (i == 0) {
      factors = std::exchange(left, {});
      break;
    }
    const bool is_fixed = shape[i].is_constant();
    std::int64_t wanted = is_fixed ? shape[i].value() : 0;
    if (is_fixed && wanted == 0) return std::nullopt;
    while (wanted != 1) {
      if (left.empty()) return std::nullopt;
      AxisFactor& last = left.back();
      if (last.size == 0 && is_fixed) return std::nullopt;
      if (!is_fixed || wanted % last.size == 0) {
        factors.insert(factors.begin(), last);
        if (is_fixed) wanted /= last.size;
        const bool is_unknown = last.size == 0;
        left.pop_back();
        if (is_unknown) break;
      } else {
        if (last.size % wanted != 0) return std::nullopt;
        factors.insert(factors.begin(), {last.axis, last.stride, wanted});
        last = {last.axis, last.stride * wanted, last.size / wanted};
        wanted = 1;
      }
    }
  }
  if (!left.empty()) return std::nullopt;
  return AxisLayout(std::move(axes), starts_);
}

std::optional<AxisLayout> AxisLayout::transposed(const std::vector<std::int64_t>& perm) const {
  if (perm.size() != axes_.size()) return std::nullopt;
  Axes axes;
  for (const std::int64_t from : perm) axes.push_back(axes_.at(static_cast<std::size_t>(from)));
  return AxisLayout(std::move(axes), starts_);
}

std::optional<AxisLayout> AxisLayout::sliced(std::int64_t axis, std::int64_t begin, std::int64_t size) const {
  if (axis < 0) axis += static_cast<std::int64_t>(axes_.size());
  if (axis < 0 || axis >= static_cast<std::int64_t>(axes_.size()) || size <= 0) return std::nullopt;
  AxisLayout result = *this;
  std::vector<AxisFactor>& factors = result.axes_[static_cast<std::size_t>(axis)];
  if (factors.empty() && begin == 0) return result;
  if (factors.size() != 1 || factors[0].size == 0) return std::nullopt;
  if (begin < 0) begin += factors[0].size;
  if (begin < 0 || begin + size > factors[0].size) return std::nullopt;
  result.starts_[factors[0].axis] += begin * factors[0].stride;
  factors[0].size = size;
  return AxisLayout(std::move(result.axes_), result.starts_);
}

std::optional<AxisLayout> AxisLayout::after_slice(const onnx::Node& node, const onnx::Value& output) const {
  const auto starts = constant_ints(node.input(1));
  const auto axes = constant_ints(node.input(3));
  const auto steps = constant_ints(node.input(4));
  const bool has_steps = node.input(4) != nullptr;
  if (!starts || !axes || axes->size() != starts->size() || (has_steps && !steps)) return std::nullopt;
  if (has_steps && std::any_of(steps->begin(), steps->end(), [](std::int64_t step) { return step != 1; })) {
    return std::nullopt;
  }
  std::optional<AxisLayout> result = *this;
  for (std::size_t i = 0; i < axes->size() && result; ++i) {
    const std::int64_t axis = (*axes)[i] < 0 ? (*axes)[i] + static_cast<std::int64_t>(axes_.size()) : (*axes)[i];
    result = result->sliced(axis, (*starts)[i], fixed_size(&output, static_cast<std::size_t>(axis)));
  }
  return result;
}

std::optional<AxisLayout> AxisLayout::after_split(const onnx::Node& node, const onnx::Value& output) const {
  std::int64_t axis = node.int_or("axis", 0);
  if (axis < 0) axis += static_cast<std::int64_t>(axes_.size());
  std::int64_t begin = 0;
  for (const onnx::Value* other : node.outputs) {
    const std::int64_t size = fixed_size(other, static_cast<std::size_t>(axis));
    if (size == 0) return std::nullopt;
    if (other == &output) return sliced(axis, begin, size);
    begin += size;
  }
  return std::nullopt;
}

std::optional<AxisLayout> AxisLayout::after_gather(const onnx::Node& node, const onnx::Value& output) const {
  const auto indices = constant_ints(node.input(1));
  if (!indices || indices->size() != 1) return std::nullopt;
  const auto result = sliced(node.int_or("axis", 0), indices->front(), 1);
  return result ? result->reshaped(*output.shape) : std::nullopt;
}

std::optional<AxisLayout> AxisLayout::after(const onnx::Node& node, const onnx::Value& output) const {
  if (!output.shape) return std::nullopt;
  constexpr std::array<std::string_view, 5> reshapes{"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"};
  if (std::any_of(reshapes.begin(), reshapes.end(), [&](std::string_view type) { return node.is(type); })) {
    return reshaped(*output.shape);
  }
  if (node.is("Transpose")) return transposed(node.ints("perm").value_or(std::vector<std::int64_t>{}));
  if (node.is("Slice")) return after_slice(node, output);
  if (node.is("Split")) return after_split(node, output);
  if (node.is("Gather")) return after_gather(node, output);
  return std::nullopt;
}

}  // namespace graft::passes::deformable_attention
