// How often a tensor's numbers have which size, counted as they come, in memory that does not grow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace graft::quant {

/// Of absolute values. The range is the power of two above the largest so far; when a larger number comes, neighboring
/// bins are added until it fits. So what is counted depends on the numbers alone: not on their order, not on the number
/// of threads, and not on whether the counting was interrupted.
class Histogram {
 public:
  static constexpr std::size_t bin_count = 8192;

  void add(std::span<const float> values);
  /// As if what the other one counted had been added here.
  void add(const Histogram& other);

  /// What is in a bin: bin i holds absolute values from i to i + 1 widths. Zeros are in none.
  [[nodiscard]] const std::vector<std::uint64_t>& bins() const { return bins_; }
  [[nodiscard]] double width() const;
  /// One past the last bin that holds something.
  [[nodiscard]] std::size_t used_bins() const;

  /// Finite numbers that are not 0.
  [[nodiscard]] std::uint64_t counted() const;
  [[nodiscard]] float largest() const;  ///< The largest absolute value of a finite number.

  /// Of all numbers so far; those of another histogram can be put in again.
  struct Figures {
    std::uint64_t zeros = 0;
    std::uint64_t nan = 0;
    std::uint64_t infinite = 0;
    float lowest = 0;                         ///< Of the finite numbers, or 0 where none is negative.
    float highest = 0;                        ///< Of the finite numbers, or 0 where none is positive.
    std::int32_t exponent = lowest_exponent;  ///< The range ends at 2 to this power.
    friend bool operator==(const Figures&, const Figures&) = default;
  };
  [[nodiscard]] const Figures& figures() const { return figures_; }

  Histogram() = default;
  /// As it was. Throws Error (internal) for figures and bins that no histogram has.
  Histogram(const Figures& figures, std::vector<std::uint64_t> bins);

  friend bool operator==(const Histogram&, const Histogram&) = default;

 private:
  /// Below it all bins have the width of this range's; no calibration data are that small.
  static constexpr std::int32_t lowest_exponent = -64;

  void widen_to(float size);
  void widen_to_exponent(std::int32_t exponent);
  void add_piece(std::span<const float> values);

  Figures figures_;
  std::vector<std::uint64_t> bins_ = std::vector<std::uint64_t>(bin_count);
};

}  // namespace graft::quant
