// What reads an input, through what only moves it.
#include "verify/input_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"

namespace graft::verify {
namespace {

constexpr double largest_of_image = 255;

/// Gives the numbers of an input on: in another type, another size, or with others around them.
bool gives_on(const onnx::Node& node) {
  return has_trait(node, onnx::trait::moves_data) || is_any_of(node, {"Cast", "Pad", "Resize"});
}

/// All elements of a constant, of which there are few.
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

/// With 1, 3 or 4 channels in one of the places where an image has them.
bool has_shape_of_image(const onnx::Value& input) {
  const auto are_channels = [](const Dim& dim) {
    return dim.is_constant() && (dim.value() == 1 || dim.value() == 3 || dim.value() == 4);
  };
  constexpr std::size_t rank = 4;
  if (!input.shape || input.shape->size() > rank || input.shape->size() + 1 < rank) return false;
  return are_channels((*input.shape)[input.shape->size() - (rank - 1)]) || are_channels(input.shape->back());
}

/// One for all channels, or one for each; a mask has others too.
bool are_means_of_image(const onnx::Value* value, double sign) {
  const auto constant = value == nullptr ? std::nullopt : value->constant();
  if (!constant) return false;
  const std::int64_t count = constant->element_count();
  return (count == 1 || count == 3 || count == 4) &&
         all_of(value, [sign](double number) { return is_mean_of_image(sign * number); });
}

/// The numbers that 8 bits hold, where one scale and zero point are constants: a network that was calibrated does not
/// tell those apart that are beyond.
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

/// What a node does with one of its inputs, if that shows its range.
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
  if (node.is("Cast") && node.int_or("to", 0) == static_cast<std::int64_t>(onnx::ElementType::u8))
    return image("casts it to uint8");
  return std::nullopt;
}

/// How many rows there are to choose from along the axis; nothing where the file does not say it.
std::optional<std::int64_t> rows_of(const onnx::Node& node) {
  const onnx::Value* table = node.input(0);
  if (table == nullptr) return std::nullopt;
  const std::int64_t axis = node.int_or("axis", 0);
  const auto place = [axis](std::size_t rank) {
    return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
  };
  if (table->initializer) {
    const std::vector<std::int64_t>& dims = table->initializer->dims;
    return place(dims.size()) < dims.size() ? std::optional(dims[place(dims.size())]) : std::nullopt;
  }
  if (!table->shape || place(table->shape->size()) >= table->shape->size()) return std::nullopt;
  const Dim& dim = (*table->shape)[place(table->shape->size())];
  return dim.is_constant() ? std::optional(dim.value()) : std::nullopt;
}

/// Of integers that are, moved alone, the indices of a Gather: all its rows; of several, those of the smallest table.
std::optional<InputRange> range_of_index(const onnx::Model& model, const onnx::Value& input) {
  if (!input.type || !is_integer(*input.type)) return std::nullopt;
  std::optional<InputRange> range;
  std::vector<const onnx::Value*> waiting{&input};
  std::set<const onnx::Value*> seen;
  while (!waiting.empty()) {
    const onnx::Value* value = waiting.back();
    waiting.pop_back();
    if (!seen.insert(value).second) continue;
    for (const auto& use : value->uses) {
      const onnx::Node& node = *use.node;
      if (node.graph != &model.graph()) continue;
      const bool is_index = has_trait(node, onnx::trait::indexes_axis) && use.index == 1;
      const auto rows = is_index ? rows_of(node) : std::nullopt;
      if (rows && *rows > 0 && (!range || static_cast<double>(*rows - 1) < range->highest)) {
        range = InputRange{.lowest = 0,
                           .highest = static_cast<double>(*rows - 1),
                           .why = fmt::format("{} takes one of {} rows by it", onnx::describe(node), *rows)};
      }
      if (is_index || !gives_on(node) || (use.index != 0 && !node.is("Concat"))) continue;
      for (const onnx::Value* output : node.outputs) {
        if (output != nullptr) waiting.push_back(output);
      }
    }
  }
  const bool has_8_bits = *input.type == onnx::ElementType::i8 || *input.type == onnx::ElementType::u8;
  if (range && has_8_bits)
    range->highest = std::min(range->highest, *input.type == onnx::ElementType::i8 ? 127.0 : 255.0);
  return range;
}

}  // namespace

InputRanges infer_input_ranges(const onnx::Model& model) {
  InputRanges ranges;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (input->initializer) continue;
    if (auto range = range_of_index(model, *input)) ranges.emplace(input->name, std::move(*range));
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
