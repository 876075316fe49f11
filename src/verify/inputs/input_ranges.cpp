// Infers the ranges of inputs from the nodes that read them, also through nodes that only move data.
#include "verify/inputs/input_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"

namespace graft::verify {
namespace {

constexpr double largest_of_image = 255;

/// Returns whether the output elements of a node are the input elements, possibly converted, resized or padded, so that
/// they have the same range.
bool gives_on(const onnx::Node& node) {
  return has_trait(node, onnx::trait::moves_data) || is_any_of(node, {"Cast", "Pad", "Resize"});
}

/// Returns whether a value is a constant with 1 to 64 elements and `holds` is true for all of them.
bool all_of(const onnx::Value* value, const std::function<bool(double)>& holds) {
  constexpr std::int64_t few = 64;
  const auto constant = value == nullptr ? std::nullopt : value->constant();
  if (!constant || constant->element_count() == 0 || constant->element_count() > few) return false;
  const auto numbers = constant->numbers();
  return numbers && std::all_of(numbers->begin(), numbers->end(), holds);
}

bool is_near(double a, double b) {
  constexpr double relative = 1e-3;
  return std::abs(a - b) <= relative * std::abs(b);
}

bool is_scale_of_image(double number) {
  constexpr std::array<double, 5> scales{255, 256, 127.5, 128, 127};
  return std::any_of(scales.begin(), scales.end(), [&](double scale) { return is_near(number, scale); });
}

bool is_mean_of_image(double number) {
  constexpr double darkest = 80;
  constexpr double brightest = 160;
  return number >= darkest && number <= brightest;
}

/// Returns whether an input may be an image: it has rank 3 or 4, and 1, 3 or 4 channels on the axis before height and
/// width or on the last axis.
bool has_shape_of_image(const onnx::Value& input) {
  const auto are_channels = [](const Dim& dim) {
    return dim.is_constant() && (dim.value() == 1 || dim.value() == 3 || dim.value() == 4);
  };
  constexpr std::size_t rank = 4;
  if (!input.shape || input.shape->size() > rank || input.shape->size() + 1 < rank) return false;
  return are_channels((*input.shape)[input.shape->size() - (rank - 1)]) || are_channels(input.shape->back());
}

/// Returns whether a constant, multiplied by `sign`, may contain the mean color of images: 1, 3 or 4 numbers that are
/// each about half of the range of 8 bits. Masks have other numbers of elements.
bool are_means_of_image(const onnx::Value* value, double sign) {
  const auto constant = value == nullptr ? std::nullopt : value->constant();
  if (!constant) return false;
  const std::int64_t count = constant->element_count();
  return (count == 1 || count == 3 || count == 4) &&
         all_of(value, [sign](double number) { return is_mean_of_image(sign * number); });
}

/// Returns the range of real numbers that a QuantizeLinear with one scale and one zero point represents, or nothing for
/// any other. A calibrated network cannot distinguish values beyond this range.
std::optional<InputRange> range_of_integers(const onnx::Node& node) {
  const auto constant_of = [&](std::size_t place) {
    auto constant = node.input(place) == nullptr ? std::nullopt : node.input(place)->constant();
    return constant && constant->element_count() == 1 ? std::move(constant) : std::nullopt;
  };
  const auto scale_constant = constant_of(1);
  const auto zero_constant = constant_of(2);
  const bool has_zero_point = node.input(2) != nullptr;
  if (!scale_constant || (has_zero_point && !zero_constant)) return std::nullopt;
  const auto scale = scale_constant->scalar();
  const auto zero = has_zero_point ? zero_constant->scalar() : std::optional(0.0);
  const onnx::ElementType type = has_zero_point ? zero_constant->type : onnx::ElementType::u8;
  const bool is_signed = type == onnx::ElementType::i8;
  if (!scale || *scale <= 0 || !zero || (!is_signed && type != onnx::ElementType::u8)) return std::nullopt;
  const double lowest = is_signed ? -128 : 0;
  const double highest = lowest + largest_of_image;
  return InputRange{.lowest = (lowest - *zero) * *scale,
                    .highest = (highest - *zero) * *scale,
                    .why = fmt::format("{} rounds it to 8 bits of that range", onnx::describe(node))};
}

/// Returns a range for the synthetic values of input number `place` of a NonMaxSuppression. For boxes it is 0 to 1, so
/// that most boxes overlap partially, whether they are given by corners or by center and size. For scores it is a range
/// around the score threshold, or nothing if the default range suits them.
std::optional<InputRange> range_of_boxes(const onnx::Node& node, std::size_t place) {
  if (place == 0) return InputRange{.lowest = 0, .highest = 1, .why = fmt::format("{} reads boxes", describe(node))};
  constexpr std::size_t score_threshold = 4;
  const onnx::Value* limit = node.input(score_threshold);
  const auto constant = place != 1 || limit == nullptr ? std::nullopt : limit->constant();
  const auto threshold = constant ? constant->scalar() : std::nullopt;
  // Other thresholds lie among the normally distributed values that an input without a range receives.
  if (!threshold || !(std::abs(*threshold) >= 1) || !std::isfinite(*threshold)) return std::nullopt;
  return InputRange{.lowest = *threshold - 1,
                    .highest = *threshold + 1,
                    .why = fmt::format("{} selects scores above {:g}", describe(node), *threshold)};
}

/// Returns the range of `input` if the operation of `node`, which reads it as its input `place`, shows the range (a
/// division by 255, for example); otherwise nothing.
std::optional<InputRange> range_before(const onnx::Value& input, const onnx::Node& node, std::size_t place) {
  if (!node.domain.empty()) return std::nullopt;
  const onnx::Value* other = node.inputs.size() == 2 ? node.input(1 - place) : nullptr;
  const auto image = [&](const char* does) {
    return InputRange{
        .lowest = 0, .highest = largest_of_image, .why = fmt::format("{} {}", onnx::describe(node), does)};
  };
  if (node.is("Div") && place == 0 && all_of(other, is_scale_of_image)) return image("divides it by its range");
  if (node.is("Mul") && all_of(other, [](double x) { return x > 0 && is_scale_of_image(1 / x); }))
    return image("divides it by its range");
  if (node.is("Mul") && all_of(other, [](double x) { return is_near(x, largest_of_image); }))
    return InputRange{.lowest = 0, .highest = 1, .why = fmt::format("{} multiplies it by 255", onnx::describe(node))};
  constexpr std::size_t mean = 3;
  const bool subtracts = (node.is("Sub") && place == 0 && are_means_of_image(other, 1)) ||
                         (node.is("Add") && are_means_of_image(other, -1)) ||
                         (node.is("BatchNormalization") && place == 0 && are_means_of_image(node.input(mean), 1));
  if (subtracts && has_shape_of_image(input)) return image("subtracts means");
  if (node.is("QuantizeLinear") && place == 0) return range_of_integers(node);
  if (node.is("NonMaxSuppression")) return range_of_boxes(node, place);
  if (node.is("Cast") && node.int_or("to", 0) == static_cast<std::int64_t>(onnx::ElementType::u8))
    return image("casts it to uint8");
  return std::nullopt;
}

/// Returns the size of an axis, or nothing if it is dynamic or unknown. A negative `axis` counts from the end.
std::optional<std::int64_t> size_of_axis(const onnx::Value& value, std::int64_t axis) {
  const std::size_t rank = value.initializer ? value.initializer->dims.size() : value.shape ? value.shape->size() : 0;
  const auto place = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
  if (place >= rank) return std::nullopt;
  if (value.initializer) return value.initializer->dims[place];
  const Dim& dim = (*value.shape)[place];
  return dim.is_constant() ? std::optional(dim.value()) : std::nullopt;
}

/// Returns the smallest size of the axes, from `first` on, that the indices of a GatherND or ScatterND address, or
/// nothing if one is unknown. If the length of an index is unknown, all axes from `first` on count.
std::optional<std::int64_t> smallest_axis(const onnx::Value& data, const onnx::Value& indices, std::int64_t first) {
  const std::size_t rank = data.initializer ? data.initializer->dims.size() : data.shape ? data.shape->size() : 0;
  const auto length = size_of_axis(indices, -1);
  const std::int64_t end =
      std::min(static_cast<std::int64_t>(rank), length ? first + *length : static_cast<std::int64_t>(rank));
  std::optional<std::int64_t> smallest;
  for (std::int64_t axis = first; axis < end; ++axis) {
    const auto size = size_of_axis(data, axis);
    if (!size) return std::nullopt;
    smallest = std::min(smallest.value_or(*size), *size);
  }
  return smallest;
}

/// Returns n if input `place` of a node accepts indices from 0 to n - 1, or nothing if the input is not an index or the
/// file does not declare n.
std::optional<std::int64_t> rows_of(const onnx::Node& node, std::size_t place) {
  const onnx::Value* data = node.input(0);
  if (data == nullptr) return std::nullopt;
  if (place == 0 && node.is("OneHot")) {
    const auto depth = node.input(1) == nullptr ? std::nullopt : node.input(1)->constant();
    const auto number = depth ? depth->scalar() : std::nullopt;
    return number ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
  }
  if (place != 1) return std::nullopt;
  if (has_trait(node, onnx::trait::indexes_axis) || is_any_of(node, {"ScatterElements", "Scatter"}))
    return size_of_axis(*data, node.int_or("axis", 0));
  if (node.is("GatherND")) return smallest_axis(*data, *node.input(1), node.int_or("batch_dims", 0));
  if (node.is("ScatterND")) return smallest_axis(*data, *node.input(1), 0);
  return std::nullopt;
}

/// Returns the lowest and the highest element of a value, or nothing if it is not a constant with 1 to 1024 elements.
std::optional<std::pair<double, double>> limits_of(const onnx::Value* value) {
  constexpr std::int64_t few = 1024;
  const auto constant = value == nullptr ? std::nullopt : value->constant();
  if (!constant || constant->element_count() == 0 || constant->element_count() > few) return std::nullopt;
  const auto numbers = constant->numbers();
  if (!numbers) return std::nullopt;
  const auto [lowest, highest] = std::minmax_element(numbers->begin(), numbers->end());
  return std::pair(*lowest, *highest);
}

/// Returns a range around the constants with which a node compares its input number `place`, or to which it clips this
/// input, so that values lie on both sides of them. Returns nothing if the default range 0 to 3 already contains such
/// values, or if the constants are large, because such values may become sizes.
std::optional<InputRange> range_around(const onnx::Node& node, std::size_t place) {
  constexpr double largest = 1024;
  std::optional<std::pair<double, double>> limits;
  if (node.is("Clip") && place == 0) {
    const auto lowest = limits_of(node.input(1));
    const auto highest = limits_of(node.input(2));
    if (lowest && highest) limits.emplace(lowest->first, highest->second);
  } else if (has_trait(node, onnx::trait::compares)) {
    limits = limits_of(node.input(1 - place));
  }
  if (!limits || (limits->first >= 0 && limits->second <= 2)) return std::nullopt;
  if (limits->first < -largest || limits->second > largest) return std::nullopt;
  return InputRange{.lowest = limits->first == 0 ? 0 : limits->first - 1,
                    .highest = limits->second + 1,
                    .why = fmt::format("{} {} {:g}{}", onnx::describe(node),
                                       node.is("Clip") ? "clips it to" : "compares it with", limits->first,
                                       limits->first == limits->second ? "" : fmt::format(" to {:g}", limits->second))};
}

/// Returns the constant that a node adds to its input `place`, negative for a subtraction, or nothing if the node is
/// not such an Add or Sub.
std::optional<double> added_by(const onnx::Node& node, std::size_t place) {
  if (!node.is("Add") && !(node.is("Sub") && place == 0)) return std::nullopt;
  const auto limits = limits_of(node.input(1 - place));
  if (!limits || limits->first != limits->second) return std::nullopt;
  return node.is("Add") ? limits->first : -limits->first;
}

/// Returns the range of an integer input, or nothing if the model does not show it. If the input is an index, possibly
/// after a constant was added, the range covers the rows of the table; of several tables, the rows that all of them
/// have, or else the rows of the smallest. If the input is compared with constants or clipped, the range has values on
/// both sides of these constants.
std::optional<InputRange> range_of_integer(const onnx::Model& model, const onnx::Value& input) {
  if (!input.type || !is_integer(*input.type)) return std::nullopt;
  std::optional<InputRange> rows;
  std::optional<InputRange> around;
  struct Moved {
    const onnx::Value* value;
    double added;
  };
  std::vector<Moved> waiting{{&input, 0}};
  std::set<const onnx::Value*> seen;
  while (!waiting.empty()) {
    const auto [value, added] = waiting.back();
    waiting.pop_back();
    if (!seen.insert(value).second) continue;
    for (const auto& use : value->uses) {
      const onnx::Node& node = *use.node;
      if (node.graph != &model.graph()) continue;
      const auto count = rows_of(node, use.index);
      if (count && *count > 0) {
        InputRange found{.lowest = 0 - added,
                         .highest = static_cast<double>(*count - 1) - added,
                         .why = node.is("OneHot")
                                    ? fmt::format("{} has a depth of {}", onnx::describe(node), *count)
                                    : fmt::format("{} selects one of {} rows with it", onnx::describe(node), *count)};
        if (!rows || found.highest - found.lowest < rows->highest - rows->lowest) {
          if (rows)
            std::swap(found, *rows);
          else
            rows = found;
        }
        // The rows that all tables have in common; if there are no such rows, the rows of the smallest table.
        const double lowest = std::max(found.lowest, rows->lowest);
        const double highest = std::min(found.highest, rows->highest);
        if (lowest <= highest) {
          rows->lowest = lowest;
          rows->highest = highest;
        }
        continue;
      }
      if (auto found = range_around(node, use.index); found && !around) {
        around = std::move(found);
        around->lowest -= added;
        around->highest -= added;
      }
      const auto more = added_by(node, use.index);
      if (!more && (!gives_on(node) || (use.index != 0 && !node.is("Concat")))) continue;
      for (const onnx::Value* output : node.outputs) {
        if (output != nullptr) waiting.push_back({output, added + more.value_or(0)});
      }
    }
  }
  std::optional<InputRange> range = rows ? std::move(rows) : std::move(around);
  if (!range) return std::nullopt;
  const auto [lowest, highest] = [&]() -> std::pair<double, double> {
    switch (*input.type) {
      case onnx::ElementType::i8: return {-128, 127};
      case onnx::ElementType::u8: return {0, 255};
      case onnx::ElementType::u16:
      case onnx::ElementType::u32:
      case onnx::ElementType::u64: return {0, range->highest};
      default: return {range->lowest, range->highest};
    }
  }();
  range->lowest = std::max(range->lowest, lowest);
  range->highest = std::min(range->highest, highest);
  return range->lowest <= range->highest ? std::move(range) : std::nullopt;
}

}  // namespace

InputRanges infer_input_ranges(const onnx::Model& model) {
  InputRanges ranges;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (input->initializer) continue;
    if (auto range = range_of_integer(model, *input)) ranges.emplace(input->name, std::move(*range));
    std::vector<const onnx::Value*> waiting{input};
    std::set<const onnx::Value*> seen;
    while (!waiting.empty() && !ranges.contains(input->name)) {
      const onnx::Value* value = waiting.back();
      waiting.pop_back();
      if (!seen.insert(value).second) continue;
      for (const auto& use : value->uses) {
        const onnx::Node& node = *use.node;
        if (node.graph != &model.graph()) continue;
        if (auto range = range_before(*input, node, use.index)) {
          ranges.emplace(input->name, std::move(*range));
          break;
        }
        if (!gives_on(node) || (use.index != 0 && !node.is("Concat"))) continue;
        for (const onnx::Value* output : node.outputs) {
          if (output != nullptr) waiting.push_back(output);
        }
      }
    }
  }
  return ranges;
}

}  // namespace graft::verify
