// Iterates over the elements of a tensor in its own type, without copying or widening the tensor.
#pragma once

#include <Eigen/Core>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "graft/operator/float8.hpp"
#include "onnx/tensor_data.hpp"

namespace graft::onnx {

namespace detail {

/// Calls `f` with each of the first `count` elements, which have type T. The elements may be unaligned, because the
/// bytes of constants are used where they lie in the file.
template <class T, class F>
void for_each_of(const TensorData& tensor, std::size_t count, F& f) {
  const char* address = tensor.bytes.data();
  for (std::size_t i = 0; i < count; ++i, address += sizeof(T)) {
    T value;
    std::memcpy(&value, address, sizeof value);
    f(value);
  }
}

template <class F>
void for_each_packed(const TensorData& tensor, std::size_t count, int bits, bool is_signed, F& f) {
  const std::size_t per_byte = 8 / static_cast<std::size_t>(bits);
  const int mask = (1 << bits) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(tensor.bytes.data()[i / per_byte]);
    int value = (byte >> (static_cast<std::size_t>(bits) * (i % per_byte))) & mask;
    if (is_signed && value > mask / 2) value -= mask + 1;
    f(value);
  }
}

}  // namespace detail

/// Calls `f` with each element of an integer or boolean tensor, in order. Returns false for other types.
template <class F>
bool for_each_int(const TensorData& tensor, F&& f) {
  const auto count = static_cast<std::size_t>(tensor.element_count());
  switch (tensor.type) {
    case ElementType::i8: detail::for_each_of<std::int8_t>(tensor, count, f); return true;
    case ElementType::u8: detail::for_each_of<std::uint8_t>(tensor, count, f); return true;
    case ElementType::i16: detail::for_each_of<std::int16_t>(tensor, count, f); return true;
    case ElementType::u16: detail::for_each_of<std::uint16_t>(tensor, count, f); return true;
    case ElementType::i32: detail::for_each_of<std::int32_t>(tensor, count, f); return true;
    case ElementType::u32: detail::for_each_of<std::uint32_t>(tensor, count, f); return true;
    case ElementType::i64: detail::for_each_of<std::int64_t>(tensor, count, f); return true;
    case ElementType::u64: detail::for_each_of<std::uint64_t>(tensor, count, f); return true;
    case ElementType::boolean: {
      const auto as_number = [&](char value) { f(value != 0 ? 1 : 0); };
      detail::for_each_of<char>(tensor, count, as_number);
      return true;
    }
    case ElementType::u4: detail::for_each_packed(tensor, count, 4, false, f); return true;
    case ElementType::i4: detail::for_each_packed(tensor, count, 4, true, f); return true;
    case ElementType::u2: detail::for_each_packed(tensor, count, 2, false, f); return true;
    case ElementType::i2: detail::for_each_packed(tensor, count, 2, true, f); return true;
    default: return false;
  }
}

/// Calls `f` with each element of a numeric tensor, in order. f16, bf16 and f8e4m3fn are passed as float, which
/// represents them exactly, and all other types are passed unchanged. Returns false for types that TensorData::numbers
/// does not support.
template <class F>
bool for_each_number(const TensorData& tensor, F&& f) {
  const auto count = static_cast<std::size_t>(tensor.element_count());
  const auto as_float = [&](auto value) { f(static_cast<float>(value)); };
  switch (tensor.type) {
    case ElementType::f32: detail::for_each_of<float>(tensor, count, f); return true;
    case ElementType::f64: detail::for_each_of<double>(tensor, count, f); return true;
    case ElementType::f16: detail::for_each_of<Eigen::half>(tensor, count, as_float); return true;
    case ElementType::bf16: detail::for_each_of<Eigen::bfloat16>(tensor, count, as_float); return true;
    case ElementType::f8e4m3fn: detail::for_each_of<Float8E4M3FN>(tensor, count, as_float); return true;
    default: return for_each_int(tensor, f);
  }
}

/// Returns the nearest f16, ties to even; infinity from 65520 on. The function has no branches or tables, because it
/// rounds whole tensors of a network; Eigen's conversion to f16 and back takes several times as long.
[[nodiscard]] inline float round_to_f16(float value) {
  constexpr std::uint32_t sign_bit = 0x8000'0000;
  constexpr std::uint32_t lost_digits = 0x1fff;           // The mantissa is shortened from 23 to 10 bits.
  constexpr std::uint32_t smallest_normal = 0x3880'0000;  // 2^-14
  constexpr std::uint32_t beyond = 0x4780'0000;           // 2^16
  constexpr std::uint32_t infinite = 0x7f80'0000;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t size = bits & ~sign_bit;
  const std::uint32_t normal = (size + lost_digits / 2 + ((size >> 13) & 1)) & ~lost_digits;
  // Below 2^-14, f16 represents the multiples of 2^-24, as do the floats from 0.5 to 1.
  const auto subnormal = std::bit_cast<std::uint32_t>((std::bit_cast<float>(size) + 0.5F) - 0.5F);
  std::uint32_t rounded = size < smallest_normal ? subnormal : normal;
  rounded = rounded >= beyond ? infinite : rounded;
  rounded = size > infinite ? size : rounded;  // NaN
  return std::bit_cast<float>(rounded | (bits & sign_bit));
}

/// Returns the nearest bf16, ties to even.
[[nodiscard]] inline float round_to_bf16(float value) {
  constexpr std::uint32_t lost_digits = 0xffff;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + lost_digits / 2 + ((bits >> 16) & 1)) & ~lost_digits;
  return value != value ? value : std::bit_cast<float>(rounded);
}

}  // namespace graft::onnx
