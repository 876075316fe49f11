// Converts the operators of quantization-aware training to QuantizeLinear and DequantizeLinear of 8 bits where these
// round alike, and to the arithmetic of TensorFlow elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "import/tensorflow/node_converter.hpp"

namespace graft::tensorflow {
namespace {

/// The values that a quantized tensor can represent: (k - zero) * scale for k from lowest to highest, with one scale
/// and zero point per channel, or one for all.
struct Grid {
  std::vector<double> scales;
  std::vector<double> zeros;  ///< The zero point of each channel: the k that represents 0.
  double lowest = 0;
  double highest = 255;
  Ints dims;  ///< The dimensions of the scales as a tensor.
};

onnx::Value* numbers_of(NodeConverter& node, const std::vector<double>& numbers, const Ints& dims,
                        onnx::ElementType type) {
  return node.constant_of(onnx::TensorData::from_numbers(type, dims, numbers));
}

/// Returns x rounded to the values of the grid, by QuantizeLinear and DequantizeLinear if the grid has 8 bits,
/// otherwise by arithmetic. `axis` is the axis of the scales, if there is one scale per channel.
onnx::Value* put_on_grid(NodeConverter& node, onnx::Value* x, const Grid& grid, std::int64_t axis) {
  const onnx::ElementType type = x->type.value_or(onnx::ElementType::f32);
  constexpr double u8_highest = 255;
  constexpr double i8_lowest = -128;
  constexpr double i8_highest = 127;
  const bool is_u8 = grid.lowest >= 0 && grid.highest <= u8_highest && grid.highest > i8_highest;
  const bool is_i8 = grid.lowest < 0 && grid.lowest >= i8_lowest && grid.highest == i8_highest;
  Ints dims = grid.dims;
  if (!dims.empty()) {  // Aligns the scales with the axis of x for broadcasting.
    const std::size_t rank = node.known_rank(x, "one of its axes is quantized");
    if (axis < 0 || static_cast<std::size_t>(axis) >= rank) {
      node.fail(fmt::format("attribute `axis` is {}; it must be between 0 and {} for an input of {} dimensions", axis,
                            static_cast<std::int64_t>(rank) - 1, rank));
    }
    dims.resize(rank - static_cast<std::size_t>(axis), 1);
  }
  if (!is_u8 && !is_i8) {
    onnx::Value* scale = numbers_of(node, grid.scales, dims, type);
    onnx::Value* steps = node.add("Round", {node.add("Div", {x, scale})});
    std::vector<double> lows;
    std::vector<double> highs;
    for (const double zero : grid.zeros) {
      lows.push_back(grid.lowest - zero);
      highs.push_back(grid.highest - zero);
    }
    steps = node.add("Min", {steps, numbers_of(node, highs, dims, type)});
    steps = node.add("Max", {steps, numbers_of(node, lows, dims, type)});
    return node.add("Mul", {steps, scale});
  }
  if (grid.lowest != (is_u8 ? 0 : i8_lowest)) {  // A narrow range excludes the lowest number.
    std::vector<double> bounds;
    for (std::size_t i = 0; i < grid.zeros.size(); ++i) {
      bounds.push_back((grid.lowest - grid.zeros[i]) * grid.scales[i]);
    }
    x = node.add("Max", {x, numbers_of(node, bounds, dims, type)});
  }
  onnx::Value* scale = numbers_of(node, grid.scales, grid.dims, type);
  onnx::Value* zero = numbers_of(node, grid.zeros, grid.dims, is_u8 ? onnx::ElementType::u8 : onnx::ElementType::i8);
  const Attributes attributes = grid.dims.empty() ? Attributes{} : Attributes{{"axis", axis}};
  onnx::Value* quantized = node.add("QuantizeLinear", {x, scale, zero}, attributes);
  return node.add("DequantizeLinear", {quantized, scale, zero}, attributes);
}

std::vector<double> known_numbers(NodeConverter& node, std::size_t input) {
  const auto tensor = node.constant(input);
  const auto numbers = tensor ? tensor->numbers() : std::nullopt;
  if (!numbers || numbers->empty()) {
    node.fail(fmt::format("its range (input {}, '{}') is not constant; only constant ranges are supported", input,
                          node.input(input)->name));
  }
  return *numbers;
}

std::int64_t known_bits(NodeConverter& node) {
  constexpr std::int64_t most = 16;
  const std::int64_t bits = node.int_or("num_bits", 8);
  if (bits < 2 || bits > most)
    node.fail(fmt::format("attribute `num_bits` is {}; it must be between 2 and {}", bits, most));
  return bits;
}

/// Returns whether i8 with the zero point 0 represents every value of a grid.
bool fits_i8(const Grid& grid) {
  constexpr double i8_lowest = -128;
  constexpr double i8_highest = 127;
  return std::all_of(grid.zeros.begin(), grid.zeros.end(),
                     [&](double zero) { return grid.lowest - zero >= i8_lowest && grid.highest - zero <= i8_highest; });
}

/// Returns x rounded to the values of the grid by QuantizeLinear and DequantizeLinear of i8 with the zero point 0,
/// after Max and Min with the limits of the grid. `axis` is the axis of the scales, which must be the last one, if
/// there is one scale per channel.
onnx::Value* put_on_i8_grid(NodeConverter& node, onnx::Value* x, const Grid& grid, std::int64_t axis) {
  const onnx::ElementType type = x->type.value_or(onnx::ElementType::f32);
  std::vector<double> lows;
  std::vector<double> highs;
  for (std::size_t i = 0; i < grid.zeros.size(); ++i) {
    lows.push_back((grid.lowest - grid.zeros[i]) * grid.scales[i]);
    highs.push_back((grid.highest - grid.zeros[i]) * grid.scales[i]);
  }
  x = node.add("Max", {x, numbers_of(node, lows, grid.dims, type)});
  x = node.add("Min", {x, numbers_of(node, highs, grid.dims, type)});
  onnx::Value* scale = numbers_of(node, grid.scales, grid.dims, type);
  onnx::Value* zero = numbers_of(node, std::vector<double>(grid.zeros.size(), 0), grid.dims, onnx::ElementType::i8);
  const Attributes attributes = grid.dims.empty() ? Attributes{} : Attributes{{"axis", axis}};
  return node.add("DequantizeLinear", {node.add("QuantizeLinear", {x, scale, zero}, attributes), scale, zero},
                  attributes);
}

/// Returns x rounded to the values of the grid as TensorFlow's kernel does (fake_quant_ops_functor.h): a number halfway
/// between two values is rounded up, whereas QuantizeLinear rounds it to the even step.
onnx::Value* put_on_grid_as_tensorflow(NodeConverter& node, onnx::Value* x, const Grid& grid) {
  const onnx::ElementType type = x->type.value_or(onnx::ElementType::f32);
  std::vector<double> lows;
  std::vector<double> highs;
  std::vector<double> inverses;
  for (std::size_t i = 0; i < grid.zeros.size(); ++i) {
    const auto scale = static_cast<float>(grid.scales[i]);
    lows.push_back(static_cast<float>(grid.lowest - grid.zeros[i]) * scale);
    highs.push_back(static_cast<float>(grid.highest - grid.zeros[i]) * scale);
    inverses.push_back(1 / scale);
  }
  const auto numbers = [&](const std::vector<double>& values) { return numbers_of(node, values, grid.dims, type); };
  onnx::Value* low = numbers(lows);
  x = node.add("Min", {node.add("Max", {x, low}), numbers(highs)});
  x = node.add("Mul", {node.add("Sub", {x, low}), numbers(inverses)});
  constexpr double half = 0.5;
  x = node.add("Floor", {node.add("Add", {x, node.scalar_of(half, type)})});
  return node.add("Add", {node.add("Mul", {x, numbers(grid.scales)}), low});
}

/// FakeQuant becomes a rounding to the values that a quantized tensor can represent (Grid). The range is shifted so
/// that 0 is one of these values, as in TensorFlow (fake_quant_ops_functor.h).
void fake_quantize(NodeConverter& node) {
  std::vector<double> lows{node.float_or("min", -6)};
  std::vector<double> highs{node.float_or("max", 6)};
  if (node.op() != "FakeQuantWithMinMaxArgs") {
    lows = known_numbers(node, 1);
    highs = known_numbers(node, 2);
  }
  if (lows.size() != highs.size()) {
    node.fail(fmt::format("it has {} lower and {} upper bounds; there must be as many lower as upper bounds",
                          lows.size(), highs.size()));
  }
  Grid grid;
  grid.lowest = node.flag_or("narrow_range", false) ? 1 : 0;
  grid.highest = std::pow(2, static_cast<double>(known_bits(node))) - 1;
  for (std::size_t i = 0; i < lows.size(); ++i) {
    const auto low = static_cast<float>(lows[i]);
    const auto high = static_cast<float>(highs[i]);
    if (low == 0 && high == 0)
      node.fail("the range is 0 to 0, so it was never trained; train or calibrate the graph before it is frozen");
    if (!(low < high))
      node.fail(fmt::format("the range is {} to {}; the lower bound must be below the upper bound", low, high));
    const float scale = (high - low) / static_cast<float>(grid.highest - grid.lowest);
    const float zero = static_cast<float>(grid.lowest) - low / scale;
    grid.zeros.push_back(std::clamp(std::round(static_cast<double>(zero)), grid.lowest, grid.highest));
    grid.scales.push_back(scale);
  }
  std::int64_t axis = 0;
  if (node.op() == "FakeQuantWithMinMaxVarsPerChannel") {
    grid.dims = {static_cast<std::int64_t>(grid.scales.size())};
    axis = static_cast<std::int64_t>(node.known_rank(node.input(0), "its last axis is quantized")) - 1;
  }
  // Weights, and symmetric ranges, are the ones that TensorRT computes with in i8.
  const bool is_symmetric = node.flag_or("narrow_range", false) || node.constant(0).has_value();
  node.give(is_symmetric && fits_i8(grid) ? put_on_i8_grid(node, node.input(0), grid, axis)
                                          : put_on_grid_as_tensorflow(node, node.input(0), grid));
}

/// Returns the factor (the inverse of the scale) by which real numbers from `low` to `high` are multiplied to get
/// quantization steps from `lowest` to `highest`. It is the same for both signs, and the wider side of the range
/// determines it (quantize_and_dequantize_op.h).
double scale_of_range(double low, double high, double lowest, double highest) {
  const double from_low = lowest * low > 0 ? lowest / low : std::numeric_limits<float>::max();
  const double from_high = highest * high > 0 ? highest / high : std::numeric_limits<float>::max();
  return std::min(from_low, from_high);
}

void quantize_and_dequantize(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  const std::string rounding = node.text_or("round_mode", "HALF_TO_EVEN");
  if (rounding != "HALF_TO_EVEN") {
    node.fail(fmt::format("attribute `round_mode` is {}; only HALF_TO_EVEN is supported", rounding));
  }
  const bool is_signed = node.flag_or("signed_input", true);
  const bool is_narrow = node.flag_or("narrow_range", false);
  std::int64_t bits = 0;
  if (node.op() == "QuantizeAndDequantizeV3") {
    bits = node.known_int(3, "the number of bits");
    if (bits < 2 || bits > 16) node.fail(fmt::format("the number of bits is {}; it must be between 2 and 16", bits));
  } else {
    bits = known_bits(node);
  }
  Grid grid;
  const double half = std::pow(2, static_cast<double>(bits - 1));
  grid.lowest = is_signed ? -half + (is_narrow ? 1 : 0) : 0;
  grid.highest = is_signed ? half - 1 : 2 * half - 1;
  const std::int64_t axis = node.int_or("axis", -1);
  if (!node.flag_or("range_given", false)) {
    // The range is that of the tensor itself, and is computed when the network runs.
    if (axis != -1)
      node.fail(
          "attribute `range_given` is false, so that the ranges of the channels are computed at run time; this is "
          "supported only for one range for all channels (`axis` -1)");
    const onnx::ElementType type = node.type(0);
    const auto number = [&](double value) { return node.scalar_of(value, type); };
    onnx::Value* high = node.add("ReduceMax", {x}, {{"keepdims", std::int64_t{0}}});
    onnx::Value* low = node.add("ReduceMin", {x}, {{"keepdims", std::int64_t{0}}});
    onnx::Value* step = node.add("Div", {node.add("Max", {high, number(0)}), number(grid.highest)});
    if (is_signed)
      step = node.add("Max", {step, node.add("Div", {node.add("Min", {low, number(0)}), number(grid.lowest)})});
    step = node.add("Max", {step, number(std::numeric_limits<float>::min())});
    onnx::Value* steps = node.add("Round", {node.add("Div", {x, step})});
    steps = node.add("Max", {node.add("Min", {steps, number(grid.highest)}), number(grid.lowest)});
    node.give(node.add("Mul", {steps, step}));
    return;
  }
  const auto lows = known_numbers(node, 1);
  const auto highs = known_numbers(node, 2);
  if (lows.size() != highs.size()) {
    node.fail(fmt::format("it has {} lower and {} upper bounds; there must be as many lower as upper bounds",
                          lows.size(), highs.size()));
  }
  for (std::size_t i = 0; i < lows.size(); ++i) {
    if (!(lows[i] <= highs[i]))
      node.fail(
          fmt::format("the range is {} to {}; the lower bound must be at most the upper bound", lows[i], highs[i]));
    const auto scale = static_cast<float>(scale_of_range(lows[i], highs[i], grid.lowest, grid.highest));
    grid.scales.push_back(1 / static_cast<double>(scale));
    grid.zeros.push_back(0);
  }
  if (axis != -1) grid.dims = {static_cast<std::int64_t>(grid.scales.size())};
  node.give(put_on_grid(node, x, grid, axis));
}

struct Stored {
  double lowest = 0;
  double highest = 255;
};

Stored stored_range(const NodeConverter& node, onnx::ElementType type) {
  switch (type) {
    case onnx::ElementType::u8: return {0, 255};
    case onnx::ElementType::i8: return {-128, 127};
    case onnx::ElementType::u16: return {0, 65535};
    case onnx::ElementType::i16: return {-32768, 32767};
    default:
      node.fail(fmt::format("the quantized type is {}; only u8, i8, u16 and i16 are supported", to_string(type)));
  }
}

/// The linear function by which stored integers represent real numbers: k represents k * scale + summand. Each of
/// TensorFlow's three modes has this form.
struct Line {
  double scale = 1;
  double summand = 0;
};

struct Range {
  double low = 0;
  double high = 0;
};

Range known_range(NodeConverter& node) {
  const auto lows = known_numbers(node, 1);
  const auto highs = known_numbers(node, 2);
  if (lows.size() != 1 || highs.size() != 1) {
    node.fail(fmt::format("it has {} lower and {} upper bounds; only one range for all channels is supported",
                          lows.size(), highs.size()));
  }
  return {lows[0], highs[0]};
}

Line stored_line(NodeConverter& node, onnx::ElementType type, const Range& range) {
  const Stored stored = stored_range(node, type);
  const std::string mode = node.text_or("mode", "MIN_COMBINED");
  const auto [low, high] = range;
  Line line;
  if (mode == "SCALED") {
    const double lowest = node.flag_or("narrow_range", false) ? stored.lowest + 1 : stored.lowest;
    line.scale = 1 / scale_of_range(low, high, lowest, stored.highest);
    return line;
  }
  line.scale = (high - low) / (stored.highest - stored.lowest);
  if (mode == "MIN_FIRST") {  // The lower bound is shifted to the nearest step of the grid.
    line.summand = std::round(low / line.scale) * line.scale - stored.lowest * line.scale;
  } else if (mode == "MIN_COMBINED") {
    line.summand = low - stored.lowest * line.scale;
  } else {
    node.fail(fmt::format("attribute `mode` is {}; it must be MIN_COMBINED, MIN_FIRST or SCALED", mode));
  }
  return line;
}

void dequantize(NodeConverter& node) {
  const onnx::ElementType type = node.type(0);
  const Line line = stored_line(node, type, known_range(node));
  onnx::Value* numbers = node.cast(node.input(0), onnx::ElementType::f32);
  onnx::Value* y = node.add("Mul", {numbers, node.scalar_of(line.scale, onnx::ElementType::f32)});
  node.give(line.summand == 0 ? y : node.add("Add", {y, node.scalar_of(line.summand, onnx::ElementType::f32)}));
}

/// Returns the range `given`, widened until it includes 0 and has the width that `ensure_minimum_range` requires, as
/// TensorFlow's kernel does (quantize_op.cc).
Range widened(const NodeConverter& node, const Range& given) {
  constexpr float least = 0.01F;
  const double low = std::min(0.0, given.low);
  const double width = std::max({1.0, std::abs(given.low), std::abs(given.high)}) *
                       static_cast<double>(node.float_or("ensure_minimum_range", least));
  return {low, std::max({0.0, given.high, low + width})};
}

/// Returns x rounded to integers, halves away from zero, whereas ONNX's Round rounds them to even.
onnx::Value* rounded_away(NodeConverter& node, onnx::Value* x) {
  onnx::Value* half = node.scalar_of(0.5, onnx::ElementType::f32);
  onnx::Value* size = node.add("Floor", {node.add("Add", {node.add("Abs", {x}), half})});
  return node.add("Mul", {node.add("Sign", {x}), size});
}

void quantize(NodeConverter& node) {
  const onnx::ElementType type = node.type_or("T", onnx::ElementType::u8);
  const Stored stored = stored_range(node, type);
  Range range = widened(node, known_range(node));
  const Line line = stored_line(node, type, range);
  const std::string mode = node.text_or("mode", "MIN_COMBINED");
  if (mode == "SCALED") {
    const double lowest = stored.lowest + (node.flag_or("narrow_range", false) ? 1 : 0);
    range = {lowest * line.scale, stored.highest * line.scale};
  }
  const auto number = [&](double value) { return node.scalar_of(value, onnx::ElementType::f32); };
  const bool is_even = mode == "SCALED" && node.text_or("round_mode", "HALF_AWAY_FROM_ZERO") == "HALF_TO_EVEN";
  // The shift by an integer follows the rounding, which changes how halves are rounded.
  const bool is_moved_later = mode == "MIN_FIRST";
  onnx::Value* steps = is_moved_later ? node.input(0) : node.add("Sub", {node.input(0), number(line.summand)});
  steps = node.add("Mul", {steps, number(1 / line.scale)});
  steps = is_even ? node.add("Round", {steps}) : rounded_away(node, steps);
  if (is_moved_later) steps = node.add("Sub", {steps, number(std::round(line.summand / line.scale))});
  steps = node.add("Max", {node.add("Min", {steps, number(stored.highest)}), number(stored.lowest)});
  node.give(0, node.cast(steps, type));
  node.give(1, number(range.low));
  node.give(2, number(range.high));
}

}  // namespace

OperatorEntries quantize_operators() {
  static const std::vector<OperatorEntry> entries =
      entries_of({{dequantize, "Dequantize"},
                  {fake_quantize, "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel"},
                  {quantize_and_dequantize, "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4"},
                  {quantize, "QuantizeV2"}});
  return entries;
}

}  // namespace graft::tensorflow
