// Divides by a number that is known when a kernel starts, with a multiplication and a shift.
#pragma once

namespace graft {

/// Divides numerators from 0 to 2^31 - 1 by a divisor from 1 to 2^31 - 1 (Granlund and Montgomery 1994, Division by
/// Invariant Integers using Multiplication).
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(int divisor) : divisor_(static_cast<unsigned>(divisor)) {
    if (divisor == 1) return;
    one_ = 0;
    unsigned log = 0;
    while ((1ULL << log) < divisor_) ++log;
    multiplier_ = static_cast<unsigned>(((1ULL << (31 + log)) + divisor_ - 1) / divisor_);
    shift_ = log - 1;
  }

  [[nodiscard]] __device__ int quotient(int numerator) const {
    const auto n = static_cast<unsigned>(numerator);
    // This form needs no branch for a divisor of 1.
    return static_cast<int>((__umulhi(n, multiplier_) + n * one_) >> shift_);
  }
  [[nodiscard]] __device__ int remainder(int numerator) const {
    return numerator - quotient(numerator) * static_cast<int>(divisor_);
  }

 private:
  unsigned divisor_ = 1;
  unsigned multiplier_ = 0;
  unsigned shift_ = 0;
  unsigned one_ = 1;  ///< The value 1 for a divisor of 1, whose multiplier does not fit into 32 bits; otherwise 0.
};

}  // namespace graft
