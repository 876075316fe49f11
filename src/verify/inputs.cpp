// Inputs that are the same on every machine: the generator and the transformation are ours to the last bit.
#include "verify/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <set>

namespace graft {
namespace {

void symbols_of(const Dim& dim, std::set<std::string, std::less<>>& names) {
  switch (dim.kind()) {
    case Dim::Kind::constant: return;
    case Dim::Kind::symbol: names.insert(dim.name()); return;
    default: symbols_of(dim.left(), names); symbols_of(dim.right(), names);
  }
}

std::uint64_t hash_of(const std::string& name) {  // FNV-1a
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

/// In (0, 1].
double uniform(std::mt19937_64& generator) {
  return static_cast<double>((generator() >> 11) + 1) * std::ldexp(1.0, -53);
}

double normal(std::mt19937_64& generator) {  // Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(uniform(generator)));
  return radius * std::cos(2 * std::numbers::pi * uniform(generator));
}

/// The largest number of a type.
double largest_of(ElementType type) {
  switch (type) {
    case ElementType::f16: return 65504;
    case ElementType::bf16: return std::ldexp(255.0, 120);
    case ElementType::f32: return std::numeric_limits<float>::max();
    case ElementType::f8e4m3fn: return 448;
    case ElementType::f8e4m3fnuz: return 240;
    case ElementType::f8e5m2:
    case ElementType::f8e5m2fnuz: return 57344;
    case ElementType::f4e2m1: return 6;
    default: return std::numeric_limits<double>::max();
  }
}

std::pair<std::int64_t, std::int64_t> integer_range(ElementType type) {
  switch (type) {
    case ElementType::i8: return {-128, 127};
    case ElementType::u8: return {0, 255};
    case ElementType::i4: return {-8, 7};
    case ElementType::u4: return {0, 15};
    case ElementType::i2: return {-2, 1};
    case ElementType::boolean: return {0, 1};
    default: return {0, 3};
  }
}

TensorData make_tensor(const std::string& name, ElementType type, std::vector<std::int64_t> dims,
                       const InputOptions& options) {
  TensorData shape_only;
  shape_only.dims = dims;
  std::vector<double> numbers(static_cast<std::size_t>(shape_only.element_count()));
  std::mt19937_64 generator(hash_of(name) ^ (options.seed * 0x9e3779b97f4a7c15U));
  const bool real = is_floating_point(type);
  const double largest = largest_of(type);
  const auto [lowest_integer, highest_integer] = integer_range(type);
  for (double& number : numbers) {
    switch (options.values) {
      case InputValues::zeros: break;
      case InputValues::ones: number = 1; break;
      case InputValues::normal:
      case InputValues::negative:
        if (real) {
          number = normal(generator) * options.scale;
          if (options.values == InputValues::negative) number = -std::abs(number);
          number = std::clamp(number, -largest, largest);
        } else {
          const auto width = static_cast<std::uint64_t>(highest_integer - lowest_integer + 1);
          number = static_cast<double>(lowest_integer + static_cast<std::int64_t>(generator() % width));
          if (options.values == InputValues::negative && lowest_integer < 0) number = -std::abs(number);
        }
    }
  }
  return TensorData::from_numbers(type, std::move(dims), numbers);
}

std::string text_of(const std::vector<std::int64_t>& numbers) { return fmt::format("[{}]", fmt::join(numbers, ", ")); }

bool has_default(const Value& input) { return input.initializer.has_value(); }

}  // namespace

std::vector<std::string> symbols_of_inputs(const Model& model) {
  std::vector<std::string> ordered;
  std::set<std::string, std::less<>> known;
  for (const Value* input : model.graph().inputs()) {
    if (has_default(*input) || !input->shape) continue;
    for (const Dim& dim : *input->shape) {
      std::set<std::string, std::less<>> names;
      symbols_of(dim, names);
      for (const std::string& name : names) {
        if (known.insert(name).second) ordered.push_back(name);
      }
    }
  }
  return ordered;
}

std::map<std::string, std::vector<std::int64_t>, std::less<>> input_shapes(const Model& model,
                                                                           const InputOptions& options) {
  std::map<std::string, std::int64_t, std::less<>> sizes = options.dims;
  std::set<std::string, std::less<>> names;
  for (const Value* input : model.graph().inputs()) {  // a symbol has one size: a given shape settles it for all inputs
    const auto given = options.shapes.find(input->name);
    if (has_default(*input) || given == options.shapes.end() || !input->shape) continue;
    for (std::size_t axis = 0; axis < std::min(input->shape->size(), given->second.size()); ++axis) {
      const Dim& dim = (*input->shape)[axis];
      if (dim.kind() == Dim::Kind::symbol) sizes.emplace(dim.name(), given->second[axis]);
    }
  }
  for (const Value* input : model.graph().inputs()) {
    if (has_default(*input)) continue;
    names.insert(input->name);
    if (!input->shape) continue;
    for (std::size_t axis = 0; axis < input->shape->size(); ++axis) {
      std::set<std::string, std::less<>> symbols;
      symbols_of((*input->shape)[axis], symbols);
      for (const std::string& symbol : symbols) sizes.emplace(symbol, axis == 0 ? options.first_size : options.size);
    }
  }
  const std::vector<std::string> symbols = symbols_of_inputs(model);
  for (const auto& [name, size] : options.dims) {
    if (std::find(symbols.begin(), symbols.end(), name) == symbols.end()) {
      std::vector<std::string> named;
      for (const std::string& symbol : symbols) {
        if (!is_unknown(Dim::symbol(symbol))) named.push_back(symbol);
      }
      throw Error(fmt::format("{}: no input has a dimension '{}'; found: {}", model.source, name,
                              named.empty() ? "no named dimension" : fmt::format("{}", fmt::join(named, ", "))));
    }
    if (size < 0) throw Error(fmt::format("{}: dimension '{}' cannot have the size {}", model.source, name, size));
  }
  for (const auto& [name, shape] : options.shapes) {
    if (!names.contains(name)) {
      throw Error(
          fmt::format("{}: there is no input '{}'; its inputs are {}", model.source, name, fmt::join(names, ", ")));
    }
  }

  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes;
  for (const Value* input : model.graph().inputs()) {
    if (has_default(*input)) continue;
    const auto given = options.shapes.find(input->name);
    if (!input->shape) {
      if (given == options.shapes.end()) {
        throw Error(fmt::format("{}: the shape of input '{}' is unknown; say which to use", model.source, input->name));
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
        throw Error(fmt::format("{}: input '{}' cannot have the shape {}; the model says {}", model.source, input->name,
                                text_of(given->second), to_string(*input->shape)));
      }
      dims = given->second;
    }
    shapes[input->name] = std::move(dims);
  }
  return shapes;
}

TensorMap make_inputs(const Model& model, const InputOptions& options) {
  const auto shapes = input_shapes(model, options);
  TensorMap inputs;
  for (const Value* input : model.graph().inputs()) {
    if (has_default(*input)) continue;
    if (!input->type ||
        !(is_floating_point(*input->type) || is_integer(*input->type) || *input->type == ElementType::boolean)) {
      throw Error(fmt::format("{}: no numbers can be made for input '{}' of type {}", model.source, input->name,
                              input->type ? to_string(*input->type) : "unknown"));
    }
    inputs[input->name] = make_tensor(input->name, *input->type, shapes.at(input->name), options);
  }
  return inputs;
}

}  // namespace graft
