// Counts the absolute values of a tensor in bins, in constant memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace graft::quant {

/// A histogram of absolute values. Its range ends at a power of two; for a value beyond it, pairs of neighboring bins
/// are merged until the value fits. The counts depend only on the set of values: not on their order, on the number of
/// threads, or on interruptions.
class Histogram {
 public:
  static constexpr std::size_t bin_count = 8192;

  void add(std::span<const float> values);
  /// Adds the counts of another histogram, as if its values had been added here.
  void add(const Histogram& other);

  /// Returns the bins: bin i counts absolute values from i to i + 1 bin widths. Zeros are not counted in any bin.
  [[nodiscard]] const std::vector<std::uint64_t>& bins() const { return bins_; }
  [[nodiscard]] double width() const;
  /// Returns 1 plus the index of the last bin that is not empty, or 0 if all bins are empty.
  [[nodiscard]] std::size_t used_bins() const;

  /// Returns the number of finite values that are not 0.
  [[nodiscard]] std::uint64_t counted() const;
  [[nodiscard]] float largest() const;  ///< Returns the largest absolute value of a finite number.

  /// Statistics of all counted values. A histogram can be restored from these statistics and its bins.
  struct Figures {
    std::uint64_t zeros = 0;
    std::uint64_t nan = 0;
    std::uint64_t infinite = 0;
    float lowest = 0;                         ///< The lowest finite number, or 0 if no finite number is negative.
    float highest = 0;                        ///< The highest finite number, or 0 if no finite number is positive.
    std::int32_t exponent = lowest_exponent;  ///< The binary exponent of the end of the range.
    friend bool operator==(const Figures&, const Figures&) = default;
  };
  [[nodiscard]] const Figures& figures() const { return figures_; }

  Histogram() = default;
  /// Restores a histogram from the statistics and the bins of another one. Throws Error (internal) if they are
  /// inconsistent.
  Histogram(const Figures& figures, std::vector<std::uint64_t> bins);

  friend bool operator==(const Histogram&, const Histogram&) = default;

 private:
  /// The binary exponent of the smallest range, 2^-64. Values below it are counted in the bins of this range.
  static constexpr std::int32_t lowest_exponent = -64;

  void widen_to(float size);
  void widen_to_exponent(std::int32_t exponent);
  void add_piece(std::span<const float> values);

  Figures figures_;
  std::vector<std::uint64_t> bins_ = std::vector<std::uint64_t>(bin_count);
};

}  // namespace graft::quant
