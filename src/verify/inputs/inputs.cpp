// Generates inputs that are the same on every machine. The random generator and the transformation are implemented here
// to guarantee identical bits.
#include "verify/inputs/inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <set>
#include <string_view>

#include "graft/setting.hpp"
#include "onnx/declared_shapes.hpp"
#include "onnx/extract.hpp"
#include "onnx/schema.hpp"

namespace graft::verify {
namespace {

void add_symbols(const Dim& dim, std::set<std::string, std::less<>>& names) {
  switch (dim.kind()) {
    case Dim::Kind::constant: return;
    case Dim::Kind::symbol: names.insert(dim.name()); return;
    default: add_symbols(dim.left(), names); add_symbols(dim.right(), names);
  }
}

std::uint64_t hash_of(const std::string& name) {  // FNV-1a
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

/// Returns a uniformly distributed random number in (0, 1].
double uniform(std::mt19937_64& generator) {
  return static_cast<double>((generator() >> 11) + 1) * std::ldexp(1.0, -53);
}

double normal(std::mt19937_64& generator) {  // Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(uniform(generator)));
  return radius * std::cos(2 * std::numbers::pi * uniform(generator));
}

/// Returns the largest finite number of a floating-point type.
double largest_of(onnx::ElementType type) {
  switch (type) {
    case onnx::ElementType::f16: return 65504;
    case onnx::ElementType::bf16: return std::ldexp(255.0, 120);
    case onnx::ElementType::f32: return std::numeric_limits<float>::max();
    case onnx::ElementType::f8e4m3fn: return 448;
    case onnx::ElementType::f8e4m3fnuz: return 240;
    case onnx::ElementType::f8e5m2:
    case onnx::ElementType::f8e5m2fnuz: return 57344;
    case onnx::ElementType::f4e2m1: return 6;
    default: return std::numeric_limits<double>::max();
  }
}

/// Returns whether a node of ai.onnx maps any integers to a range that is known in advance: Mod and Clip with
/// constants, ArgMax, ArgMin and Sign.
bool bounds_numbers(const onnx::Node& node) {
  const auto is_constant = [&](std::size_t i) { return node.input(i) != nullptr && node.input(i)->constant(); };
  if (node.is("Mod")) return is_constant(1);
  if (node.is("Clip")) return is_constant(1) && is_constant(2);
  return is_any_of(node, {"ArgMax", "ArgMin", "Sign"});
}

bool has_8_bits(const std::optional<onnx::ElementType>& type) { return type && onnx::bits_of(*type) <= 8; }

/// Returns the indices of the inputs of an ai.onnx operator that are indices, axes, sizes, counts or exponents, so that
/// arbitrary integers there are invalid or too large.
std::vector<std::size_t> counting_operands(std::string_view op_type) {
  static const std::map<std::string_view, std::vector<std::size_t>> operands{
      {"AffineGrid", {1}},
      {"BitShift", {1}},
      {"BlackmanWindow", {0}},
      {"CenterCropPad", {1}},
      {"Col2Im", {1, 2}},
      {"ConstantOfShape", {0}},
      {"CumSum", {1}},
      {"DFT", {1, 2}},
      {"Expand", {1}},
      {"Gather", {1}},
      {"GatherElements", {1}},
      {"GatherND", {1}},
      {"HammingWindow", {0}},
      {"HannWindow", {0}},
      {"MaxUnpool", {1, 2}},
      {"MelWeightMatrix", {0, 1, 2, 3, 4}},
      {"NegativeLogLikelihoodLoss", {1}},
      {"NonMaxSuppression", {2}},
      {"OneHot", {0, 1}},
      {"Pad", {1, 3}},
      {"Pow", {0, 1}},
      {"Range", {0, 1, 2}},
      {"Reshape", {1}},
      {"Resize", {2, 3}},
      {"ReverseSequence", {1}},
      {"RoiAlign", {2}},
      {"STFT", {1, 3}},
      {"Scatter", {1}},
      {"ScatterElements", {1}},
      {"ScatterND", {1}},
      {"SequenceAt", {1}},
      {"SequenceErase", {1}},
      {"SequenceInsert", {2}},
      {"Slice", {1, 2, 3, 4}},
      {"SoftmaxCrossEntropyLoss", {1}},
      {"Split", {1}},
      {"SplitToSequence", {1}},
      {"Squeeze", {1}},
      {"TensorScatter", {2}},
      {"Tile", {1}},
      {"TopK", {1}},
      {"Trilu", {1}},
      {"Unsqueeze", {1}},
      {"Upsample", {1}},
  };
  const auto found = operands.find(op_type);
  if (found != operands.end()) return found->second;
  const onnx::Traits traits = onnx::traits_of(op_type);
  if ((traits & onnx::trait::recurrent) != 0) return {4};
  if ((traits & onnx::trait::reduction) != 0) return {1};
  return {};
}

/// Returns whether the inputs of a node that counting_operands() returns are indices, which do not determine sizes.
bool reads_indices(const onnx::Node& node) {
  return is_any_of(node, {"Gather", "GatherElements", "GatherND", "OneHot", "Scatter", "ScatterElements", "ScatterND"});
}

std::pair<std::int64_t, std::int64_t> integer_range(onnx::ElementType type, bool wide) {
  if (wide && (type == onnx::ElementType::i16 || type == onnx::ElementType::i32 || type == onnx::ElementType::i64))
    return {-1000, 1000};
  if (wide && (type == onnx::ElementType::u16 || type == onnx::ElementType::u32 || type == onnx::ElementType::u64))
    return {0, 1000};
  switch (type) {
    case onnx::ElementType::i8: return {-128, 127};
    case onnx::ElementType::u8: return {0, 255};
    case onnx::ElementType::i4: return {-8, 7};
    case onnx::ElementType::u4: return {0, 15};
    case onnx::ElementType::i2: return {-2, 1};
    case onnx::ElementType::boolean: return {0, 1};
    default: return {0, 3};
  }
}

/// Returns the lowest and highest number of a type. For 64-bit integers these are limited to integers that f64, in
/// which ranges are stored, represents exactly.
std::pair<double, double> limits_of(onnx::ElementType type) {
  if (is_floating_point(type)) return {-largest_of(type), largest_of(type)};
  constexpr double of_32_bits = 2147483647;
  constexpr double exact_in_f64 = 9007199254740992;
  switch (type) {
    case onnx::ElementType::boolean: return {0, 1};
    case onnx::ElementType::i8: return {-128, 127};
    case onnx::ElementType::u8: return {0, 255};
    case onnx::ElementType::i16: return {-32768, 32767};
    case onnx::ElementType::u16: return {0, 65535};
    case onnx::ElementType::i4: return {-8, 7};
    case onnx::ElementType::u4: return {0, 15};
    case onnx::ElementType::i32: return {-of_32_bits - 1, of_32_bits};
    case onnx::ElementType::u32: return {0, 2 * of_32_bits + 1};
    case onnx::ElementType::u64: return {0, exact_in_f64};
    default: return {-exact_in_f64, exact_in_f64};
  }
}

onnx::TensorData make_tensor(const std::string& name, onnx::ElementType type, std::vector<std::int64_t> dims,
                             const InputOptions& options) {
  onnx::TensorData shape_only;
  shape_only.dims = dims;
  std::vector<double> numbers(static_cast<std::size_t>(shape_only.element_count()));
  const auto known = options.numbers.find(name);
  if (known != options.numbers.end() && known->second.size() == numbers.size())
    return onnx::TensorData::from_numbers(type, std::move(dims), known->second);
  std::mt19937_64 generator(hash_of(name) ^ (options.seed * 0x9e3779b97f4a7c15U));
  const bool real = is_floating_point(type);
  const double largest = largest_of(type);
  const auto [lowest_integer, highest_integer] = integer_range(type, options.wide_integers.contains(name));
  std::vector<double> choices{};
  for (const double choice : options.choices) {
    const bool fits = real ? std::abs(choice) <= largest
                           : choice == std::trunc(choice) && choice >= static_cast<double>(lowest_integer) &&
                                 choice <= static_cast<double>(highest_integer);
    if (fits) choices.push_back(choice);
  }
  const bool is_large = options.large_integers.contains(name) && options.values == InputValues::normal && !real;
  const auto range = options.ranges.find(name);
  const bool spreads = options.values == InputValues::normal || options.values == InputValues::uniform ||
                       (!real && options.values == InputValues::negative);
  if (range != options.ranges.end() && spreads) {
    const auto& [lowest, highest, why] = range->second;
    for (double& number : numbers) {
      number = real ? lowest + (highest - lowest) * uniform(generator)
                    : std::floor(lowest + (highest - lowest + 1) * (1 - uniform(generator)));
    }
    return onnx::TensorData::from_numbers(type, std::move(dims), numbers);
  }
  if (is_large) {
    constexpr double bits = 31;
    const auto [lowest, highest] = limits_of(type);
    for (double& number : numbers) {
      const double magnitude = std::floor(std::exp2(bits * (1 - uniform(generator))));
      const bool is_negative = lowest < 0 && generator() % 2 == 1;
      number = std::clamp(is_negative ? -magnitude : magnitude, lowest, highest);
    }
    return onnx::TensorData::from_numbers(type, std::move(dims), numbers);
  }
  std::size_t index = 0;
  for (double& number : numbers) {
    switch (options.values) {
      case InputValues::zeros: break;
      case InputValues::ones: number = 1; break;
      case InputValues::chosen:
        if (!choices.empty()) number = choices[generator() % choices.size()];
        break;
      case InputValues::infinite:
      case InputValues::nan:
      case InputValues::normal:
      case InputValues::uniform:
      case InputValues::negative:
        if (real) {
          number = options.values == InputValues::uniform ? 4 * uniform(generator) - 2 : normal(generator);
          number *= options.scale;
          if (options.values == InputValues::negative) number = -std::abs(number);
          number = std::clamp(number, -largest, largest);
          constexpr std::size_t every = 7;
          const bool is_special = options.values == InputValues::infinite || options.values == InputValues::nan;
          if (is_special && ++index % every == 0) {
            number = options.values == InputValues::nan
                         ? std::numeric_limits<double>::quiet_NaN()
                         : std::copysign(std::numeric_limits<double>::infinity(), number);
          }
        } else {
          const auto width = static_cast<std::uint64_t>(highest_integer - lowest_integer + 1);
          number = static_cast<double>(lowest_integer + static_cast<std::int64_t>(generator() % width));
          if (options.values == InputValues::negative && lowest_integer < 0) number = -std::abs(number);
        }
    }
  }
  return onnx::TensorData::from_numbers(type, std::move(dims), numbers);
}

void check_range(const onnx::Model& model, const onnx::Value& input, const InputRange& range) {
  const auto [lowest, highest] = limits_of(*input.type);
  if (range.lowest >= lowest && range.highest <= highest) return;
  throw Error(fmt::format(
      "{}: input '{}' of type {} cannot have values from {:g} to {:g}; the values must be between {:g} and {:g}",
      model.source, input.name, to_string(*input.type), range.lowest, range.highest, lowest, highest));
}

bool has_default(const onnx::Value& input) { return input.initializer.has_value(); }

}  // namespace

std::set<std::string, std::less<>> inputs_of_any_integers(const onnx::Model& model) {
  std::vector<const onnx::Value*> waiting;
  model.graph().for_each_node([&](const onnx::Node& node) {
    if (!node.domain.empty() || !node.subgraphs().empty()) {
      for (const onnx::Value* value : values_read_by(node)) waiting.push_back(value);
      return;
    }
    for (const std::size_t operand : counting_operands(node.op_type)) {
      if (const onnx::Value* value = node.input(operand)) waiting.push_back(value);
    }
  });
  std::set<const onnx::Value*> counts;
  while (!waiting.empty()) {
    const onnx::Value* value = waiting.back();
    waiting.pop_back();
    if (!counts.insert(value).second || value->producer == nullptr) continue;
    // The values of these tensors do not matter, only their shapes.
    if (value->producer->is("Shape") || value->producer->is("Size")) continue;
    for (const onnx::Value* input : value->producer->inputs) {
      if (input != nullptr) waiting.push_back(input);
    }
  }
  std::set<std::string, std::less<>> names;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (!counts.contains(input)) names.insert(input->name);
  }
  return names;
}

std::set<std::string, std::less<>> symbols_of(const Dim& dim) {
  std::set<std::string, std::less<>> names;
  add_symbols(dim, names);
  return names;
}

std::set<std::string, std::less<>> inputs_of_large_integers(const onnx::Model& model) {
  enum class Use : std::uint8_t { size, index, number };
  std::vector<std::pair<const onnx::Value*, Use>> waiting;
  model.graph().for_each_node([&](const onnx::Node& node) {
    if (!node.domain.empty() || !node.subgraphs().empty()) {
      for (const onnx::Value* value : values_read_by(node)) waiting.emplace_back(value, Use::size);
      return;
    }
    const bool takes_indices = reads_indices(node);
    const std::vector<std::size_t> counting = counting_operands(node.op_type);
    for (const std::size_t operand : counting) {
      if (const onnx::Value* value = node.input(operand))
        waiting.emplace_back(value, takes_indices ? Use::index : Use::size);
    }
    const bool is_real = std::any_of(node.outputs.begin(), node.outputs.end(), [](const onnx::Value* output) {
      return output != nullptr && (!output->type || is_floating_point(*output->type));
    });
    if (!is_real) return;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const onnx::Value* value = node.inputs[i];
      if (value == nullptr || (value->type && !is_integer(*value->type))) continue;
      if (std::find(counting.begin(), counting.end(), i) == counting.end()) waiting.emplace_back(value, Use::number);
    }
  });
  std::set<std::pair<const onnx::Value*, Use>> reached;
  while (!waiting.empty()) {
    const auto [value, use] = waiting.back();
    waiting.pop_back();
    if (!reached.emplace(value, use).second || value->producer == nullptr) continue;
    const onnx::Node& producer = *value->producer;
    if (has_trait(producer, onnx::trait::reads_shape)) continue;
    if (use != Use::size && (value->type == onnx::ElementType::boolean || bounds_numbers(producer))) continue;
    if (use == Use::number && has_8_bits(value->type)) continue;
    for (const onnx::Value* input : producer.inputs) {
      if (input != nullptr) waiting.emplace_back(input, use);
    }
  }
  std::set<std::string, std::less<>> names;
  for (const onnx::Value* input : model.graph().inputs()) {
    const bool is_used =
        std::any_of(reached.begin(), reached.end(), [&](const auto& use) { return use.first == input; });
    if (!is_used && input->type && is_integer(*input->type) && !has_8_bits(input->type)) names.insert(input->name);
  }
  return names;
}

std::set<std::string, std::less<>> inputs_of_sizes(const onnx::Model& model) {
  std::vector<const onnx::Value*> waiting;
  model.graph().for_each_node([&](const onnx::Node& node) {
    if (!node.domain.empty() || reads_indices(node)) return;
    for (const std::size_t operand : counting_operands(node.op_type)) waiting.push_back(node.input(operand));
  });
  std::set<const onnx::Value*> sizes;
  while (!waiting.empty()) {
    const onnx::Value* value = waiting.back();
    waiting.pop_back();
    if (value == nullptr || !sizes.insert(value).second || value->producer == nullptr) continue;
    if (has_trait(*value->producer, onnx::trait::reads_shape)) continue;
    waiting.insert(waiting.end(), value->producer->inputs.begin(), value->producer->inputs.end());
  }
  std::set<std::string, std::less<>> names;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (sizes.contains(input)) names.insert(input->name);
  }
  return names;
}

std::vector<std::string> symbols_of_inputs(const onnx::Model& model) {
  std::vector<std::string> ordered;
  std::set<std::string, std::less<>> known;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (has_default(*input) || !input->shape) continue;
    for (const Dim& dim : *input->shape) {
      for (const std::string& name : symbols_of(dim)) {
        if (known.insert(name).second) ordered.push_back(name);
      }
    }
  }
  return ordered;
}

std::map<std::string, std::vector<std::int64_t>, std::less<>> input_shapes(const onnx::Model& model,
                                                                           const InputOptions& options) {
  std::map<std::string, std::int64_t, std::less<>> sizes = options.dims;
  std::set<std::string, std::less<>> names;
  for (const onnx::Value* input :
       model.graph().inputs()) {  // A symbol has one size, so a shape that the caller sets fixes it for all inputs.
    const auto given = options.shapes.find(input->name);
    if (has_default(*input) || given == options.shapes.end() || !input->shape) continue;
    for (std::size_t axis = 0; axis < std::min(input->shape->size(), given->second.size()); ++axis) {
      const Dim& dim = (*input->shape)[axis];
      if (dim.kind() == Dim::Kind::symbol) sizes.emplace(dim.name(), given->second[axis]);
    }
  }
  for (const onnx::Value* input : model.graph().inputs()) {
    if (has_default(*input)) continue;
    names.insert(input->name);
    if (!input->shape) continue;
    for (std::size_t axis = 0; axis < input->shape->size(); ++axis) {
      for (const std::string& symbol : symbols_of((*input->shape)[axis])) {
        sizes.emplace(symbol, axis == 0 ? options.first_size : options.size);
      }
    }
  }
  const std::vector<std::string> symbols = symbols_of_inputs(model);
  for (const auto& [name, size] : options.dims) {
    if (std::find(symbols.begin(), symbols.end(), name) == symbols.end()) {
      std::vector<std::string> named;
      for (const std::string& symbol : symbols) {
        if (!onnx::is_unknown(Dim::symbol(symbol))) named.push_back(symbol);
      }
      throw Error(fmt::format("{}: no input has a dimension '{}'; {}", model.source, name,
                              named.empty() ? "no dimension of the inputs has a name"
                                            : fmt::format("the named dimensions are {}", fmt::join(named, ", "))));
    }
    if (size < 0)
      throw Error(
          fmt::format("{}: dimension '{}' cannot have the size {}; it must be at least 0", model.source, name, size));
  }
  for (const auto& [name, shape] : options.shapes) {
    if (!names.contains(name)) {
      throw Error(fmt::format("{}: the model has no input '{}'; its inputs are {}", model.source, name,
                              fmt::join(names, ", ")));
    }
  }

  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (has_default(*input)) continue;
    const auto given = options.shapes.find(input->name);
    if (!input->shape) {
      if (given == options.shapes.end()) {
        fail_without_rank(model, *input, setting_name(Setting::synthetic_shapes));
      }
      shapes[input->name] = given->second;
      continue;
    }
    std::vector<std::int64_t> dims;
    for (const Dim& dim : *input->shape) {
      const auto size = dim.evaluate([&](const std::string& symbol) -> std::optional<std::int64_t> {
        const auto found = sizes.find(symbol);
        return found == sizes.end() ? std::nullopt : std::optional(found->second);
      });
      dims.push_back(size.value_or(options.size));
    }
    if (given != options.shapes.end()) {
      bool fits = given->second.size() == dims.size();
      for (std::size_t axis = 0; fits && axis < dims.size(); ++axis) {
        const Dim& dim = (*input->shape)[axis];
        fits = given->second[axis] >= 0 && (!dim.is_constant() || dim.value() == given->second[axis]);
      }
      if (!fits) {
        throw Error(fmt::format("{}: input '{}' cannot have the shape {}; the model declares {}", model.source,
                                input->name, given->second, to_string(*input->shape)));
      }
      dims = given->second;
    }
    shapes[input->name] = std::move(dims);
  }
  return shapes;
}

namespace {

/// Throws Error if tensors of these shapes together have more than `most_synthetic_elements` elements.
void check_sizes(const onnx::Model& model,
                 const std::map<std::string, std::vector<std::int64_t>, std::less<>>& shapes) {
  std::int64_t left = most_synthetic_elements;
  for (const auto& [name, dims] : shapes) {
    // A size of 0 makes the tensor empty, whatever its other sizes are.
    std::int64_t count = std::find(dims.begin(), dims.end(), 0) == dims.end() ? 1 : 0;
    for (const std::int64_t size : dims) {
      if (count > 0 && size > left / count) {
        throw Error(
            fmt::format("{}: input '{}' would have {} elements; all synthetic inputs together may have at most {}\n"
                        "Set smaller sizes with {}, or provide the values with {}",
                        model.source, name, fmt::join(dims, " x "), most_synthetic_elements,
                        setting_name(Setting::synthetic_shapes), setting_name(Setting::data)));
      }
      count *= size;
    }
    left -= count;
  }
}

}  // namespace

runtime::TensorMap make_inputs(const onnx::Model& model, const InputOptions& options) {
  const auto shapes = input_shapes(model, options);
  check_sizes(model, shapes);
  runtime::TensorMap inputs;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (has_default(*input)) continue;
    if (!input->type ||
        !(is_floating_point(*input->type) || is_integer(*input->type) || *input->type == onnx::ElementType::boolean)) {
      throw Error(fmt::format("{}: no synthetic values can be generated for input '{}' of type {}", model.source,
                              input->name, input->type ? to_string(*input->type) : "unknown"));
    }
    if (const auto range = options.ranges.find(input->name); range != options.ranges.end()) {
      check_range(model, *input, range->second);
    }
    inputs[input->name] = make_tensor(input->name, *input->type, shapes.at(input->name), options);
  }
  return inputs;
}

}  // namespace graft::verify
