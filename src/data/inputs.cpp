// Matches names and converts arrays to the types of inputs.
#include "data/inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/ends.hpp"

namespace graft::data {
namespace {

using onnx::ElementType;

Port port_of(const onnx::Value& value) { return {.name = value.name, .type = value.type, .shape = value.shape}; }

onnx::Value value_of(const Port& port) {
  onnx::Value value;
  value.name = port.name;
  value.type = port.type;
  value.shape = port.shape;
  return value;
}

bool is_common_float(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f64 || type == ElementType::f16 || type == ElementType::bf16;
}

bool is_convertible(ElementType from, ElementType to) {
  constexpr int byte = 8;
  if (is_common_float(from) && is_common_float(to)) return true;
  return is_integer(from) && is_integer(to) && bits_of(from) >= byte && bits_of(to) >= byte;
}

/// Returns NumPy's name of a type, or an empty string for a type that NumPy does not have.
std::string numpy_name(ElementType type) {
  switch (type) {
    case ElementType::f64: return "float64";
    case ElementType::f32: return "float32";
    case ElementType::f16: return "float16";
    case ElementType::boolean: return "bool";
    default: break;
  }
  if (!is_integer(type) || bits_of(type) < 8) return "";
  const std::string name = to_string(type);
  return (name.front() == 'u' ? "uint" : "int") + name.substr(1);
}

/// Returns whether a port accepts these dimensions. The first dimension is not compared. With `may_exchange`, the
/// channels may be on another axis.
bool accepts(const Port& port, const std::vector<std::int64_t>& dims, bool may_exchange) {
  const onnx::Value value = value_of(port);
  return verify::can_have(value, dims) || (may_exchange && verify::order_of_input(value, dims).has_value());
}

bool accepts(const Input& input, const std::vector<std::int64_t>& dims, bool is_comparison) {
  return accepts(input.port, dims, is_comparison) ||
         (input.candidate && accepts(*input.candidate, dims, is_comparison));
}

std::vector<std::int64_t> with_first_axis(std::vector<std::int64_t> dims) {
  dims.insert(dims.begin(), 1);
  return dims;
}

std::string shape_text(ElementType type, const std::vector<std::int64_t>& dims) {
  return fmt::format("{}[{}]", to_string(type), fmt::join(dims, ", "));
}

/// Returns the line of a recipe that gives an image, [1, channels, height, width], the size of the input; an empty
/// string if another size of the image does not fit either, or if the input has no fixed height and width.
std::string size_in_recipe(const Input& input, const std::vector<std::int64_t>& dims) {
  const auto& shape = input.port.shape;
  if (!shape || shape->size() != 4 || dims.size() != 4) return "";
  const auto is_fixed = [&](std::size_t axis) { return (*shape)[axis].is_constant(); };
  if (!is_fixed(2) || !is_fixed(3) || (is_fixed(1) && (*shape)[1].value() != dims[1])) return "";
  return fmt::format("resize: [{}, {}]", (*shape)[2].value(), (*shape)[3].value());
}

/// Returns the line that ends the message about an array that does not fit the input. It says how to convert or
/// transpose the array in NumPy; an empty string if there is no such advice.
std::string next_step(const Input& input, ElementType type, const std::vector<std::int64_t>& dims, bool is_image) {
  if (input.port.type && *input.port.type != type && !is_convertible(type, *input.port.type)) {
    const std::string name = numpy_name(*input.port.type);
    if (is_integer(type) && is_common_float(*input.port.type)) {
      return fmt::format(
          "\nPrepare the array as in training, for example by (x - mean) / std, and convert it in NumPy: "
          "x.astype(\"{}\")",
          name.empty() ? "float32" : name);
    }
    return name.empty() ? "" : fmt::format("\nConvert the array in NumPy: x.astype(\"{}\")", name);
  }
  if (const auto order = verify::order_of_input(value_of(input.port), dims)) {
    const bool is_last = input.port.shape && dims.size() > 2 && order->final_dims[1] == dims.back();
    std::vector<std::size_t> axes{0};
    if (is_last) axes.push_back(dims.size() - 1);
    for (std::size_t axis = is_last ? 1 : 2; axis + (is_last ? 1 : 0) < dims.size(); ++axis) axes.push_back(axis);
    if (!is_last) axes.push_back(1);
    return fmt::format("\nIts channels are on another axis. Transpose the array in NumPy: x.transpose({})",
                       fmt::join(axes, ", "));
  }
  const std::string rule = "\nThe first axis counts samples, and all other sizes must be those of the input";
  const std::string size = is_image ? size_in_recipe(input, dims) : "";
  return size.empty() ? rule : fmt::format("{}: the recipe for images needs the line {}", rule, size);
}

/// Converts f64 to f32 without a copy in double.
onnx::Bytes to_f32(const onnx::Bytes& doubles) {
  std::string bytes(doubles.size() / 2, '\0');
  for (std::size_t i = 0; i * sizeof(double) < doubles.size(); ++i) {
    double value = 0;
    std::memcpy(&value, doubles.data() + i * sizeof(double), sizeof(double));
    const auto narrow = static_cast<float>(value);
    std::memcpy(bytes.data() + i * sizeof(float), &narrow, sizeof(float));
  }
  return onnx::Bytes(std::move(bytes));
}

[[noreturn]] void fail_range(const std::string& place, const std::string& element, ElementType type,
                             const Input& input) {
  throw Error(
      fmt::format("{}: found the value {}; input '{}' is {}, which cannot represent it\nCheck the data, or "
                  "convert the array to {} in NumPy as your application does",
                  place, element, input.name(), to_string(type), to_string(type)));
}

/// Throws Error if a finite element of `from` became infinite in `to`, the same array in the type of `input`. `place`
/// begins the message.
void check_finite(const onnx::TensorData& from, const onnx::TensorData& to, const Input& input,
                  const std::string& place) {
  const std::optional<std::vector<double>> before = from.numbers();
  const std::optional<std::vector<double>> after = to.numbers();
  for (std::size_t i = 0; i < after->size(); ++i) {
    if (std::isinf((*after)[i]) && !std::isinf((*before)[i])) {
      fail_range(place, fmt::format("{:g}", (*before)[i]), to.type, input);
    }
  }
}

bool has_infinity(const onnx::TensorData& tensor) {
  const std::optional<std::vector<double>> numbers = tensor.numbers();
  return numbers && std::any_of(numbers->begin(), numbers->end(), [](double value) { return std::isinf(value); });
}

/// Returns the smallest and the largest integer of a type with at most 32 bits, or of i64.
std::pair<std::int64_t, std::int64_t> limits_of(ElementType type) {
  const int bits = bits_of(type);
  const bool is_signed = to_string(type).front() == 'i';
  if (bits == 64)
    return {is_signed ? std::numeric_limits<std::int64_t>::min() : 0, std::numeric_limits<std::int64_t>::max()};
  const std::int64_t count = std::int64_t{1} << bits;
  return is_signed ? std::pair(-count / 2, count / 2 - 1) : std::pair(std::int64_t{0}, count - 1);
}

onnx::TensorData convert_integers(const onnx::TensorData& array, ElementType type, const Input& input,
                                  const std::string& place) {
  const std::vector<std::int64_t> values = array.ints().value();
  const auto [lowest, highest] = limits_of(type);
  for (const std::int64_t value : values) {
    // An element of u64 that is too large for i64 is read as a negative number.
    const bool is_huge = array.type == ElementType::u64 && value < 0;
    if (is_huge && type != ElementType::u64) {
      fail_range(place, std::to_string(static_cast<std::uint64_t>(value)), type, input);
    }
    if (!is_huge && (value < lowest || value > highest)) fail_range(place, std::to_string(value), type, input);
  }
  if (bits_of(type) == 64) {  // doubles represent only integers up to 2^53
    onnx::TensorData result = onnx::TensorData::from_ints(values);
    result.type = type;
    result.dims = array.dims;
    return result;
  }
  return onnx::TensorData::from_numbers(type, array.dims, {values.begin(), values.end()});
}

onnx::TensorData convert_type(const onnx::TensorData& array, const Input& input, const std::string& place) {
  const ElementType type = input.port.type.value();
  if (is_integer(type)) return convert_integers(array, type, input, place);
  onnx::TensorData result = array;
  if (array.type == ElementType::f64 && type == ElementType::f32) {
    result.type = type;
    result.bytes = to_f32(array.bytes);
  } else {
    result = onnx::TensorData::from_numbers(type, array.dims, array.numbers().value());
  }
  if (has_infinity(result)) check_finite(array, result, input, place);
  return result;
}

template <class Predicate>
bool any_number(const onnx::TensorData& tensor, const Predicate& is_wanted) {
  if (tensor.type != ElementType::f32) {
    const std::optional<std::vector<double>> numbers = tensor.numbers();
    return !numbers || std::any_of(numbers->begin(), numbers->end(), is_wanted);
  }
  // The first element usually decides, and there may be a gigabyte of elements.
  const std::string_view raw = tensor.bytes.view();
  for (std::size_t at = 0; at + sizeof(float) <= raw.size(); at += sizeof(float)) {
    float number = 0;
    std::memcpy(&number, raw.data() + at, sizeof(float));
    if (is_wanted(number)) return true;
  }
  return false;
}

}  // namespace

const Input* Inputs::find(std::string_view name) const {
  for (const Input& input : list) {
    if (input.port.name == name) return &input;
  }
  const auto found = std::find_if(list.begin(), list.end(), [&](const Input& input) { return input.has_name(name); });
  return found == list.end() ? nullptr : &*found;
}

std::string Inputs::names() const {
  std::vector<std::string> names;
  for (const Input& input : list) names.push_back(input.name());
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

Inputs inputs_of(const onnx::Model& model) {
  Inputs inputs;
  for (const onnx::Value* value : verify::fed_inputs(model)) inputs.list.push_back({.port = port_of(*value)});
  return inputs;
}

Inputs inputs_of(const onnx::Model& reference, const onnx::Model& candidate) {
  Inputs inputs{.list = {}, .is_comparison = true};
  const std::vector<const onnx::Value*> references = verify::fed_inputs(reference);
  const std::vector<const onnx::Value*> candidates = verify::fed_inputs(candidate);
  std::vector<std::string> ignored;
  const std::vector<verify::IoPair> pairs = verify::pair_io(references, candidates, "input", ignored);
  for (const onnx::Value* value : references) {
    Input input{.port = port_of(*value)};
    const auto pair =
        std::find_if(pairs.begin(), pairs.end(), [&](const verify::IoPair& each) { return each.reference == value; });
    if (pair != pairs.end()) input.candidate = port_of(*pair->candidate);
    inputs.list.push_back(std::move(input));
  }
  for (const onnx::Value* value : candidates) {
    const bool is_paired =
        std::any_of(pairs.begin(), pairs.end(), [&](const verify::IoPair& each) { return each.candidate == value; });
    if (!is_paired) inputs.list.push_back({.port = port_of(*value), .candidate = {}, .is_required = false});
  }
  return inputs;
}

std::string type_and_shape(const Port& port) {
  return fmt::format("{}{}", port.type ? to_string(*port.type) : "?",
                     port.shape ? to_string(*port.shape) : " of any shape");
}

std::string suggestion(std::string_view name, const std::vector<std::string>& allowed) {
  const std::optional<std::string> close = nearest(name, allowed);
  return close && *close != name ? fmt::format(" (did you mean '{}'?)", *close) : "";
}

void fail_unknown_input(const std::string& place, const std::string& name, const Inputs& inputs) {
  std::vector<std::string> names;
  for (const Input& input : inputs.list) {
    names.push_back(input.name());
    if (input.candidate) names.push_back(input.candidate->name);
  }
  throw Error(fmt::format(
      "{}: {} input '{}'{}; {} {}", place, inputs.is_comparison ? "neither model has an" : "the model has no", name,
      suggestion(name, names), inputs.is_comparison ? "the inputs are" : "its inputs are", inputs.names()));
}

std::optional<Fit> fit(const Input& input, ElementType type, const std::vector<std::int64_t>& dims,
                       bool is_comparison) {
  Fit fit;
  if (input.port.type && *input.port.type != type) {
    if (!is_convertible(type, *input.port.type)) return std::nullopt;
    fit.converted_from = type;
  }
  if (accepts(input, dims, is_comparison)) return fit;
  const bool lacks_axis = input.port.shape && dims.size() + 1 == input.port.shape->size();
  fit.adds_axis = lacks_axis && accepts(input, with_first_axis(dims), is_comparison);
  return fit.adds_axis ? std::optional(fit) : std::nullopt;
}

Fit fit_or_fail(const Input& input, ElementType type, const std::vector<std::int64_t>& dims, bool is_comparison,
                const std::string& place, bool is_image) {
  if (const std::optional<Fit> found = fit(input, type, dims, is_comparison)) return *found;
  const bool fits_type = !input.port.type || *input.port.type == type || is_convertible(type, *input.port.type);
  if (is_comparison && fits_type) {  // the comparison names the shapes of both models
    return {.converted_from = input.port.type && *input.port.type != type ? std::optional(type) : std::nullopt};
  }
  throw Error(fmt::format("{}: input '{}': the tensor is {}; it must be {}{}", place, input.name(),
                          shape_text(type, dims), type_and_shape(input.port), next_step(input, type, dims, is_image)));
}

std::string describe(const Fit& fit, const Input& input, const std::vector<std::int64_t>& dims,
                     const std::string& place) {
  std::string text;
  if (fit.converted_from) {
    text = fmt::format("{}: the array is {}; it is converted to {}, the type of input '{}'", place,
                       to_string(*fit.converted_from), to_string(*input.port.type), input.name());
  }
  if (!fit.adds_axis) return text;
  return fmt::format("{}{}the array of shape [{}] is one sample of input '{}', and gets a first axis of size 1",
                     text.empty() ? place : text, text.empty() ? ": " : "; ", fmt::join(dims, ", "), input.name());
}

runtime::TensorMap convert_tensors(const runtime::TensorMap& tensors, const Inputs& inputs, const std::string& place,
                                   std::vector<std::string>& notes) {
  runtime::TensorMap converted;
  for (const auto& [name, tensor] : tensors) {
    const bool is_only = name.empty() && inputs.list.size() == 1;
    if (name.empty() && !is_only) {
      throw Error(
          fmt::format("{}: the array has no name, and the inputs are {}\nPass arrays with the names of the inputs",
                      place, inputs.names()));
    }
    const Input* input = is_only ? &inputs.list.front() : inputs.find(name);
    if (input == nullptr) {
      converted.emplace(name, tensor);
      continue;
    }
    const Fit fit = fit_or_fail(*input, tensor.type, tensor.dims, inputs.is_comparison, place);
    if (std::string note = describe(fit, *input, tensor.dims, place); !note.empty()) notes.push_back(std::move(note));
    converted.emplace(input->name(), convert(tensor, fit, *input, place));
  }
  return converted;
}

onnx::TensorData convert(onnx::TensorData array, const Fit& fit, const Input& input, const std::string& place) {
  if (fit.converted_from) array = convert_type(array, input, place);
  if (fit.adds_axis) array.dims = with_first_axis(std::move(array.dims));
  return array;
}

void check_has_numbers(const std::string& input, const onnx::TensorData& tensor, const std::string& source) {
  if (!is_floating_point(tensor.type) || tensor.bytes.size() == 0) return;
  if (any_number(tensor, [](double number) { return std::isfinite(number); })) return;
  throw Error(
      fmt::format("{}: the array for the input '{}' contains no finite value, only NaN and infinities\nUse data as the "
                  "network receives them in practice",
                  source, input));
}

std::int64_t count_nan(const onnx::TensorData& tensor) {
  if (!is_common_float(tensor.type) || !any_number(tensor, [](double number) { return std::isnan(number); })) return 0;
  const std::optional<std::vector<double>> numbers = tensor.numbers();
  return std::count_if(numbers->begin(), numbers->end(), [](double number) { return std::isnan(number); });
}

}  // namespace graft::data
