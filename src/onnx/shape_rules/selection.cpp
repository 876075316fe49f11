// Shape rules of operators that join tensors, take parts of them, or pad and resize them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/shape_rules/table.hpp"

namespace graft::onnx::shape_rules {
namespace {

void concat(NodeTypes& t) {
  const std::size_t count = t.node().inputs.size();
  std::optional<ElementType> type;
  for (std::size_t i = 0; i < count && !type; ++i) type = t.type(i);
  t.set_type(0, type);
  Contents contents;
  bool known = true;
  for (std::size_t i = 0; i < count; ++i) {
    if (t.shape(i) == nullptr) return;
    if (i > 0 && t.shape(i)->size() != t.shape(0)->size()) {
      t.fail(fmt::format("input 0 has rank {} and input {} has rank {}; all inputs must have the same rank",
                         t.shape(0)->size(), i, t.shape(i)->size()));
    }
    const auto part = t.contents(i);
    known = known && part.has_value();
    if (known) contents.insert(contents.end(), part->begin(), part->end());
  }
  if (count == 0) return;
  Shape result = *t.shape(0);
  if (t.node().attribute("axis") == nullptr && !t.is_before(4)) {
    t.fail("it lacks the attribute `axis`, which is required");
  }
  const std::size_t axis = t.axis(t.node().int_or("axis", 1), result.size());
  for (std::size_t i = 1; i < count; ++i) {
    const Shape& part = *t.shape(i);
    for (std::size_t k = 0; k < result.size(); ++k) {
      if (k == axis) {
        result[k] = bounded(result[k] + part[k]);
        continue;
      }
      if (result[k].is_constant() && part[k].is_constant() && result[k].value() != part[k].value()) {
        t.fail(fmt::format("dimension {} is {} in one input and {} in another; they must be equal", k,
                           result[k].value(), part[k].value()));
      }
      if (part[k].is_constant() || is_unknown(result[k])) result[k] = part[k];
    }
  }
  t.set_shape(0, std::move(result));
  if (known && axis == 0) t.set_contents(0, std::move(contents));
}

void split(NodeTypes& t) {
  const std::size_t count = t.node().outputs.size();
  for (std::size_t i = 0; i < count; ++i) t.set_type(i, t.type(0));
  const Shape* x = t.shape(0);
  if (x == nullptr || count == 0) return;
  const std::size_t axis = t.axis(t.node().int_or("axis", 0), x->size());
  const bool given = t.node().attribute("split") != nullptr || t.has_input(1);
  const auto sizes = t.ints("split", 1);
  if (sizes && sizes->size() != count)
    t.fail(fmt::format("it has {} sizes for {} outputs; there must be one size for each output", sizes->size(), count));
  const Dim& size = (*x)[axis];
  const auto parts = static_cast<std::int64_t>(count);
  const auto contents = x->size() == 1 ? t.contents(0) : std::nullopt;
  std::int64_t first = 0;
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
    if (contents && result[0].is_constant()) {
      const std::int64_t length = result[0].value();
      if (first < 0 || length < 0 || length > static_cast<std::int64_t>(contents->size()) - first) {
        first = -1;  // The sizes do not fit the data.
      } else {
        t.set_contents(i, Contents(contents->begin() + first, contents->begin() + first + length));
        first += length;
      }
    }
    t.set_shape(i, std::move(result));
  }
}

/// Returns the index of the first element of a slice of an axis of `n` elements, and the index before which the slice
/// ends. A start before the data stands for the first element, even with a negative step, whereas an end before the
/// data becomes -1 if the step is negative.
std::pair<std::int64_t, std::int64_t> slice_ends(std::int64_t start, std::int64_t end, std::int64_t step,
                                                 std::int64_t n) {
  if (n == 0) return {0, 0};
  const auto wrap = [&](std::int64_t v) { return v < 0 ? (v < -n ? -1 : v + n) : v; };
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? n : n - 1;
  return {std::clamp<std::int64_t>(wrap(start), 0, high), std::clamp(wrap(end), low, high)};
}

/// Sets the elements of a slice as known to inference, if the elements of the input are known and `starts` and `ends`
/// are constants.
void slice_contents(NodeTypes& t, const Shape& x, const std::vector<std::int64_t>& starts,
                    const std::vector<std::int64_t>& ends, const std::vector<std::int64_t>& axes,
                    const std::vector<std::int64_t>& steps) {
  auto contents = t.contents(0);
  if (!contents) return;
  const bool is_static = std::all_of(x.begin(), x.end(), [](const Dim& dim) { return dim.is_constant(); });
  if (!is_static || product(x, 0, x.size()) != Dim(static_cast<std::int64_t>(contents->size()))) return;
  std::vector<std::size_t> sizes;
  for (const Dim& dim : x) sizes.push_back(static_cast<std::size_t>(dim.value()));
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const std::size_t axis = t.axis(axes[k], x.size());
    const auto size = static_cast<std::int64_t>(sizes[axis]);
    const std::int64_t step = std::clamp(steps[k], -size - 1, size + 1);  // so that a sum does not exceed 64 bits
    const auto [from, to] = slice_ends(starts[k], ends[k], step, size);
    std::vector<std::size_t> places;
    for (std::int64_t i = from; step > 0 ? i < to : i > to; i += step) places.push_back(static_cast<std::size_t>(i));
    std::size_t inner = 1;
    for (std::size_t i = axis + 1; i < sizes.size(); ++i) inner *= sizes[i];
    const std::size_t block = inner * sizes[axis];
    Contents part;
    for (std::size_t first = 0; first < contents->size(); first += block) {
      for (const std::size_t place : places) {
        const auto begin = contents->begin() + static_cast<std::ptrdiff_t>(first + place * inner);
        part.insert(part.end(), begin, begin + static_cast<std::ptrdiff_t>(inner));
      }
    }
    contents = std::move(part);
    sizes[axis] = places.size();
  }
  t.set_contents(0, *std::move(contents));
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
    // If the axes are unknown, every dimension may shrink.
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
    t.fail("starts, ends, axes and steps have different lengths; their lengths must be equal");
  }
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::size_t axis = t.axis((*axes)[i], x->size());
    const std::int64_t step = (*steps)[i];
    if (step == 0) t.fail("a step is 0; every step must be positive or negative");
    const Dim& size = (*x)[axis];
    if (!ends) {
      const bool prefix = ends_known && ends_known->size() == starts->size() && (*starts)[i] == 0 && step == 1;
      result[axis] = prefix ? min(size, (*ends_known)[i]) : unknown_dim();
      continue;
    }
    const std::int64_t start = (*starts)[i];
    const std::int64_t end = (*ends)[i];
    if (size.is_constant()) {
      const auto [from, to] = slice_ends(start, end, step, size.value());
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
  if (ends) slice_contents(t, *x, *starts, *ends, *axes, *steps);
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
    if (index < -n || index >= n) t.fail(fmt::format("index {} is out of range for a tensor of {} elements", index, n));
    picked.push_back((*contents)[static_cast<std::size_t>(index < 0 ? index + n : index)]);
  }
  t.set_contents(0, std::move(picked));
}

void gather_elements(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  if (x != nullptr) static_cast<void>(t.axis(t.node().int_or("axis", 0), x->size()));
  if (x != nullptr && t.shape(1) != nullptr && t.shape(1)->size() != x->size()) {
    t.fail(fmt::format("the indices have rank {} and the data have rank {}; these ranks must be equal",
                       t.shape(1)->size(), x->size()));
  }
  if (t.shape(1) != nullptr) t.set_shape(0, *t.shape(1));
}

void gather_nd(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  const Shape* indices = t.shape(1);
  if (x == nullptr || indices == nullptr || indices->empty() || !indices->back().is_constant()) return;
  const std::int64_t taken = (indices->back() + t.node().int_or("batch_dims", 0)).value();
  if (taken < 0 || taken > static_cast<std::int64_t>(x->size())) {
    t.fail(fmt::format("the indices select along {} dimensions, with the batch dimensions, but the data have rank {}",
                       taken, x->size()));
  }
  Shape result(indices->begin(), indices->end() - 1);
  result.insert(result.end(), x->begin() + taken, x->end());
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
  if (pads && pads->size() != axes.size() * 2)
    t.fail(fmt::format("it has {} pads for {} axes; there must be two pads for each axis", pads->size(), axes.size()));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = t.axis(axes[i], x->size());
    result[axis] = pads ? result[axis] + ((*pads)[i] + (*pads)[i + axes.size()]) : unknown_dim();
  }
  t.set_shape(0, std::move(result));
}

void center_crop_pad(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  if (x == nullptr) return;
  std::vector<std::int64_t> axes(x->size());
  std::iota(axes.begin(), axes.end(), 0);
  if (const auto given = t.node().ints("axes")) axes = *given;
  const auto sizes = t.contents(1);
  if (sizes && sizes->size() != axes.size())
    t.fail(
        fmt::format("it has {} sizes for {} axes; there must be one size for each axis", sizes->size(), axes.size()));
  Shape result = *x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    result[t.axis(axes[i], x->size())] = sizes ? (*sizes)[i] : unknown_dim();
  }
  t.set_shape(0, std::move(result));
}

/// Infers the output of Col2Im. The input has the shape [N, C * elements of a block, blocks], the output [N, C, sizes
/// of the image].
void col2im(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const Shape* x = t.shape(0);
  const auto image = t.contents(1);
  const auto block = t.ints(2);
  if (x == nullptr || x->size() != 3 || !image || !block) return;
  std::int64_t elements = 1;
  for (const std::int64_t size : *block) {
    if (size <= 0 || __builtin_mul_overflow(elements, size, &elements)) return;
  }
  Shape result = {(*x)[0], floor_div((*x)[1], elements)};
  result.insert(result.end(), image->begin(), image->end());
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
  const auto check_count = [&](std::string_view what, std::size_t count) {
    if (count == 0 || count == axes.size()) return;
    t.fail(fmt::format("it has {0} {1} for {2} axes; there must be {2}", count, what, axes.size()));
  };
  if (sizes) check_count("sizes", sizes->size());
  if (scales) check_count("scales", scales->size());
  const bool keeps_ratio = t.node().string_or("keep_aspect_ratio_policy", "stretch") != "stretch";
  Shape result = *x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = t.axis(axes[i], x->size());
    Dim& dim = result[axis];
    if (sizes && sizes->size() == axes.size() && !keeps_ratio) {
      dim = (*sizes)[i];
    } else if (scales && scales->size() == axes.size()) {
      const double scale = (*scales)[i];
      if (!(scale > 0)) t.fail(fmt::format("a scale is {}; it must be above 0", scale));
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

/// Infers the output of Compress and Unique, which selects elements along `axis`: the size of this axis is unknown.
/// Without the attribute `axis`, the output has one dimension of unknown size.
void compress(NodeTypes& t) {
  t.set_type(0, t.type(0));
  if (t.node().attribute("axis") == nullptr) {
    t.set_shape(0, {unknown_dim()});
  } else if (t.shape(0) != nullptr) {
    Shape result = *t.shape(0);
    result[t.axis(t.node().int_or("axis", 0), result.size())] = unknown_dim();
    t.set_shape(0, std::move(result));
  }
}

void unique(NodeTypes& t) {
  compress(t);
  for (std::size_t i = 1; i < t.node().outputs.size(); ++i) {
    t.set_type(i, ElementType::i64);
    t.set_shape(i, {unknown_dim()});
  }
}

}  // namespace

void add_selection(Table& table) {
  add(table, concat, {"Concat"});
  add(table, split, {"Split"});
  add(table, slice, {"Slice"});
  add(table, gather, {"Gather"});
  add(table, gather_elements, {"GatherElements"});
  add(table, gather_nd, {"GatherND"});
  add(table, compress, {"Compress"});
  add(table, unique, {"Unique"});
  add(table, pad, {"Pad"});
  add(table, center_crop_pad, {"CenterCropPad"});
  add(table, col2im, {"Col2Im"});
  add(table, resize, {"Resize", "Upsample"});
}

}  // namespace graft::onnx::shape_rules
