// The 8-bit floating-point number that ONNX calls FLOAT8E4M3FN and TensorRT kFP8, on the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace graft {

/// A floating-point type of 1 sign bit, 4 exponent bits with a bias of 7, and 3 mantissa bits. The largest value is
/// 448; normal values have steps of 1/8 of a power of two, and values below 2^-6 have steps of 2^-9. There is NaN and
/// no infinity (Micikevicius et al. 2022, FP8 Formats for Deep Learning).
struct Float8E4M3FN {
  static constexpr double largest = 448;
  std::uint8_t bits = 0;

  Float8E4M3FN() = default;
  /// Rounds to the nearest representable number, ties to even. Values beyond the range become 448 or -448, as in ONNX's
  /// QuantizeLinear and in TensorRT.
  explicit Float8E4M3FN(double value) : bits(std::signbit(value) ? 0x80 : 0) {
    if (std::isnan(value)) {
      bits |= nan_bits;
      return;
    }
    const double size = std::min(std::abs(value), largest);
    const int exponent = std::max(std::ilogb(size), lowest_exponent);
    // A normal number has 8 to 16 steps, a subnormal number fewer than 8. A subnormal number that rounds to 8 steps, or
    // a normal number that rounds to 16, carries into the exponent.
    const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, digits - exponent)));
    bits |= static_cast<std::uint8_t>(((exponent - lowest_exponent) << digits) + steps);
  }
  explicit operator float() const {
    const int size = bits & 0x7F;
    if (size == nan_bits) return std::numeric_limits<float>::quiet_NaN();
    const int stored_exponent = size >> digits;
    const int steps = (size & 7) + (stored_exponent == 0 ? 0 : 8);
    const float value =
        std::ldexp(static_cast<float>(steps), std::max(stored_exponent - 1, 0) + lowest_exponent - digits);
    return bits > nan_bits ? -value : value;
  }

 private:
  static constexpr int digits = 3;
  static constexpr int lowest_exponent = -6;
  static constexpr std::uint8_t nan_bits = 0x7F;
};

}  // namespace graft
