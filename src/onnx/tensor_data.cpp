// Implements element types, and typed access to the bytes of constants.
#include "onnx/tensor_data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "graft/error.hpp"
#include "onnx/elements.hpp"

namespace graft::onnx {
namespace {

struct TypeRecord {
  ElementType type;
  std::string_view name;
  std::string_view onnx_name;
  int bits;
};

constexpr std::array<TypeRecord, 28> type_records{{
    {ElementType::f32, "f32", "float", 32},
    {ElementType::u8, "u8", "uint8", 8},
    {ElementType::i8, "i8", "int8", 8},
    {ElementType::u16, "u16", "uint16", 16},
    {ElementType::i16, "i16", "int16", 16},
    {ElementType::i32, "i32", "int32", 32},
    {ElementType::i64, "i64", "int64", 64},
    {ElementType::string, "string", "string", 0},
    {ElementType::boolean, "bool", "bool", 8},
    {ElementType::f16, "f16", "float16", 16},
    {ElementType::f64, "f64", "double", 64},
    {ElementType::u32, "u32", "uint32", 32},
    {ElementType::u64, "u64", "uint64", 64},
    {ElementType::complex64, "complex64", "complex64", 64},
    {ElementType::complex128, "complex128", "complex128", 128},
    {ElementType::bf16, "bf16", "bfloat16", 16},
    {ElementType::f8e4m3fn, "f8e4m3fn", "float8e4m3fn", 8},
    {ElementType::f8e4m3fnuz, "f8e4m3fnuz", "float8e4m3fnuz", 8},
    {ElementType::f8e5m2, "f8e5m2", "float8e5m2", 8},
    {ElementType::f8e5m2fnuz, "f8e5m2fnuz", "float8e5m2fnuz", 8},
    {ElementType::u4, "u4", "uint4", 4},
    {ElementType::i4, "i4", "int4", 4},
    {ElementType::f4e2m1, "f4e2m1", "float4e2m1", 4},
    {ElementType::f8e8m0, "f8e8m0", "float8e8m0", 8},
    {ElementType::u2, "u2", "uint2", 2},
    {ElementType::i2, "i2", "int2", 2},
    {ElementType::f6e2m3, "f6e2m3", "float6e2m3", 6},
    {ElementType::f6e3m2, "f6e3m2", "float6e3m2", 6},
}};

const TypeRecord* find_record(ElementType type) {
  const auto found =
      std::find_if(type_records.begin(), type_records.end(), [&](const auto& r) { return r.type == type; });
  return found == type_records.end() ? nullptr : &*found;
}

template <class T>
void store(std::string& bytes, T value) {
  std::array<char, sizeof(T)> raw{};
  std::memcpy(raw.data(), &value, sizeof value);
  bytes.append(raw.data(), raw.size());
}

/// Rounds to the nearest integer of type T, ties to even, and saturates. NaN becomes 0.
template <class T>
T to_integer(double value) {
  if (std::isnan(value)) return T{0};
  const double rounded = std::nearbyint(value);
  // 2^63 is the first double that int64 cannot represent, so numbers are compared with the double next to the limit.
  if (rounded >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (rounded <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(rounded);
}

}  // namespace

std::string to_string(ElementType type) {
  const TypeRecord* record = find_record(type);
  if (record != nullptr) return std::string(record->name);
  return type == ElementType::undefined ? "undefined" : fmt::format("type {}", static_cast<std::int32_t>(type));
}

std::string TensorData::type_and_shape() const { return fmt::format("{}[{}]", to_string(type), fmt::join(dims, ", ")); }

std::optional<ElementType> parse_element_type(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const TypeRecord& record : type_records) {
    if (lower == record.name || lower == record.onnx_name) return record.type;
  }
  return std::nullopt;
}

std::optional<DType> to_dtype(ElementType type) {
  switch (type) {
    case ElementType::f32: return DType::f32;
    case ElementType::f16: return DType::f16;
    case ElementType::bf16: return DType::bf16;
    case ElementType::i8: return DType::i8;
    case ElementType::u8: return DType::u8;
    case ElementType::i32: return DType::i32;
    case ElementType::i64: return DType::i64;
    case ElementType::boolean: return DType::boolean;
    case ElementType::f8e4m3fn: return DType::f8e4m3fn;
    default: return std::nullopt;
  }
}

ElementType to_element_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return ElementType::f32;
    case DType::f16: return ElementType::f16;
    case DType::bf16: return ElementType::bf16;
    case DType::i8: return ElementType::i8;
    case DType::u8: return ElementType::u8;
    case DType::i32: return ElementType::i32;
    case DType::i64: return ElementType::i64;
    case DType::boolean: return ElementType::boolean;
    case DType::f8e4m3fn: return ElementType::f8e4m3fn;
  }
  return ElementType::undefined;
}

int bits_of(ElementType type) {
  const TypeRecord* record = find_record(type);
  return record == nullptr ? 0 : record->bits;
}

bool has_numbers(ElementType type) {
  switch (type) {
    case ElementType::f32:
    case ElementType::f64:
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::f8e4m3fn:
    case ElementType::boolean: return true;
    default: return is_integer(type);
  }
}

bool is_floating_point(ElementType type) {
  switch (type) {
    case ElementType::f32:
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::f64: return true;
    default: return type >= ElementType::f8e4m3fn && type <= ElementType::f6e3m2 && !is_integer(type);
  }
}

bool is_integer(ElementType type) {
  switch (type) {
    case ElementType::i8:
    case ElementType::u8:
    case ElementType::i16:
    case ElementType::u16:
    case ElementType::i32:
    case ElementType::u32:
    case ElementType::i64:
    case ElementType::u64:
    case ElementType::i4:
    case ElementType::u4:
    case ElementType::i2:
    case ElementType::u2: return true;
    default: return false;
  }
}

Bytes::Bytes(std::string owned) {
  auto holder = std::make_shared<const std::string>(std::move(owned));
  view_ = {holder->data(), holder->size()};
  owner_ = std::move(holder);
}

std::int64_t TensorData::element_count() const {
  std::int64_t count = 1;
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  for (const std::int64_t dim : dims) {
    if (__builtin_mul_overflow(count, dim, &count)) throw Error("the number of elements of a tensor exceeds 64 bits");
  }
  return count;
}

std::optional<double> TensorData::scalar() const {
  if (element_count() != 1) return std::nullopt;
  const auto values = numbers();
  return values ? std::optional(values->front()) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> TensorData::ints() const {
  if (!is_integer(type) && type != ElementType::boolean) return std::nullopt;
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(element_count()));
  for_each_int(*this, [&](auto value) { values.push_back(static_cast<std::int64_t>(value)); });
  return values;
}

std::optional<std::vector<double>> TensorData::numbers() const {
  if (!has_numbers(type)) return std::nullopt;
  std::vector<double> values(static_cast<std::size_t>(element_count()));
  double* next = values.data();
  for_each_number(*this, [&](auto value) { *next++ = static_cast<double>(value); });
  return values;
}

bool TensorData::same_as(const TensorData& other) const {
  if (type != other.type || dims != other.dims || bytes.view() != other.bytes.view()) return false;
  if (type != ElementType::string) return true;
  return strings == other.strings || (strings && other.strings && *strings == *other.strings);
}

TensorData TensorData::from_ints(const std::vector<std::int64_t>& values) {
  std::string raw;
  raw.reserve(values.size() * sizeof(std::int64_t));
  for (const std::int64_t value : values) store(raw, value);
  TensorData result;
  result.type = ElementType::i64;
  result.dims = {static_cast<std::int64_t>(values.size())};
  result.bytes = Bytes(std::move(raw));
  return result;
}

TensorData TensorData::from_floats(const std::vector<float>& values) {
  std::string raw;
  raw.reserve(values.size() * sizeof(float));
  for (const float value : values) store(raw, value);
  TensorData result;
  result.type = ElementType::f32;
  result.dims = {static_cast<std::int64_t>(values.size())};
  result.bytes = Bytes(std::move(raw));
  return result;
}

TensorData TensorData::from_strings(std::vector<std::string> values) {
  TensorData result;
  result.type = ElementType::string;
  result.dims = {static_cast<std::int64_t>(values.size())};
  result.strings = std::make_shared<const std::vector<std::string>>(std::move(values));
  return result;
}

TensorData TensorData::from_numbers(ElementType type, std::vector<std::int64_t> dims,
                                    const std::vector<double>& values) {
  TensorData result;
  result.type = type;
  result.dims = std::move(dims);
  if (result.element_count() != static_cast<std::int64_t>(values.size())) {
    throw Error(Error::Kind::internal,
                fmt::format("a tensor has {} elements and received {} values", result.element_count(), values.size()));
  }
  std::string raw;
  const auto loop = [&](auto convert) {
    raw.resize(values.size() * sizeof(convert(0.0)));
    char* out = raw.data();
    for (const double value : values) {
      const auto stored = convert(value);
      std::memcpy(out, &stored, sizeof stored);
      out += sizeof stored;
    }
  };
  switch (type) {
    case ElementType::f32: loop([](double v) { return static_cast<float>(v); }); break;
    case ElementType::f64: loop([](double v) { return v; }); break;
    case ElementType::f16: loop([](double v) { return Eigen::half(static_cast<float>(v)); }); break;
    case ElementType::bf16: loop([](double v) { return Eigen::bfloat16(static_cast<float>(v)); }); break;
    case ElementType::f8e4m3fn: loop([](double v) { return Float8E4M3FN(v); }); break;
    case ElementType::i8: loop(to_integer<std::int8_t>); break;
    case ElementType::u8: loop(to_integer<std::uint8_t>); break;
    case ElementType::i16: loop(to_integer<std::int16_t>); break;
    case ElementType::u16: loop(to_integer<std::uint16_t>); break;
    case ElementType::i32: loop(to_integer<std::int32_t>); break;
    case ElementType::u32: loop(to_integer<std::uint32_t>); break;
    case ElementType::i64: loop(to_integer<std::int64_t>); break;
    case ElementType::u64: loop(to_integer<std::uint64_t>); break;
    case ElementType::boolean: loop([](double v) { return static_cast<char>(v != 0 ? 1 : 0); }); break;
    default: throw Error(fmt::format("Graft cannot create a constant of element type {}", to_string(type)));
  }
  result.bytes = Bytes(std::move(raw));
  return result;
}

TensorData TensorData::scalar_of(ElementType type, double value) { return from_numbers(type, {}, {value}); }

namespace {

/// Returns a tensor of one dimension with the first `elements` + 1 elements of a large tensor, so that a few of them
/// can be shown without reading all weights. Returns small tensors, strings and elements smaller than a byte unchanged.
TensorData beginning_of(const TensorData& tensor, std::size_t elements) {
  const auto bits = static_cast<std::size_t>(bits_of(tensor.type));
  const std::size_t bytes = (elements + 1) * bits / 8;
  if (tensor.strings || bits < 8 || tensor.bytes.size() <= bytes) return tensor;
  TensorData result;
  result.type = tensor.type;
  result.dims = {static_cast<std::int64_t>(elements + 1)};
  result.bytes = Bytes(nullptr, {tensor.bytes.data(), bytes});
  return result;
}

}  // namespace

std::string to_string(const TensorData& tensor, std::size_t elements) {
  std::string text = fmt::format("{}[{}] {{", to_string(tensor.type), fmt::join(tensor.dims, ", "));
  const auto add = [&](const auto& values) {
    for (std::size_t i = 0; i < std::min(values.size(), elements); ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : ", ", values[i]);
    }
    if (values.size() > elements) text += ", ...";
  };
  const TensorData shown_part = beginning_of(tensor, elements);
  if (tensor.strings) {
    add(*tensor.strings);
  } else if (const auto ints = shown_part.ints()) {
    add(*ints);
  } else if (const auto numbers = shown_part.numbers()) {
    std::vector<float> shown(numbers->begin(), numbers->end());
    add(shown);
  } else {
    text += fmt::format("{} bytes", tensor.bytes.size());
  }
  return text + "}";
}

}  // namespace graft::onnx
