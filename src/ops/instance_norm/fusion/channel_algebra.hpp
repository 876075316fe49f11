// Arithmetic on the statistics of a channel: the values that a network computes from x, its mean and its variance, as
// formulas.
//
// (x - mean) / sqrt(variance + epsilon) * scale + bias can be written in many orders. As formulas, all of them are
// equal.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace graft::passes::instance_norm {

/// A number for each channel, or a single number for all channels.
using PerChannel = std::vector<double>;

/// The product mean^i * variance^j * deviation^k, where deviation = sqrt(variance + epsilon).
struct Powers {
  int mean = 0;
  int variance = 0;
  int deviation = 0;
  friend auto operator<=>(const Powers&, const Powers&) = default;  // NOLINT(modernize-use-nullptr): it errs
};

/// A sum of products of Powers, each with a factor for each channel.
class Statistic {
 public:
  Statistic() = default;
  explicit Statistic(const PerChannel& constant) { add({}, constant); }
  Statistic(Powers powers, const PerChannel& factor) { add(powers, factor); }

  [[nodiscard]] const std::map<Powers, PerChannel>& terms() const { return terms_; }
  [[nodiscard]] bool is_zero() const { return terms_.empty(); }
  /// Returns the factor of one product in the sum, or nothing if the sum does not contain the product.
  [[nodiscard]] std::optional<PerChannel> factor(Powers powers) const;
  [[nodiscard]] bool is_constant() const { return is_zero() || (terms_.size() == 1 && factor({}).has_value()); }

  friend Statistic operator+(const Statistic& a, const Statistic& b);
  friend Statistic operator*(const Statistic& a, const Statistic& b);
  friend Statistic operator-(const Statistic& a);
  /// Returns 1 / a, or nothing unless a is a single product of a constant and a power of the deviation.
  [[nodiscard]] std::optional<Statistic> reciprocal() const;

  /// Returns a string such as "1.02 variance + 1e-05".
  [[nodiscard]] std::string to_string() const;

 private:
  void add(Powers powers, const PerChannel& factor);

  std::map<Powers, PerChannel> terms_;
};

/// A formula square * x^2 + linear * x + rest, in which the coefficients are statistics.
struct ChannelFormula {
  Statistic square;
  Statistic linear;
  Statistic rest;

  [[nodiscard]] bool has_x() const { return !square.is_zero() || !linear.is_zero(); }
  /// Returns the average of the formula over the elements of the channel.
  [[nodiscard]] Statistic average() const;

  friend ChannelFormula operator+(const ChannelFormula& a, const ChannelFormula& b);
  friend ChannelFormula operator-(const ChannelFormula& a);
  /// Returns the product of two formulas, or nothing if it contains a higher power of x than the second.
  friend std::optional<ChannelFormula> product(const ChannelFormula& a, const ChannelFormula& b);
};

/// Returns the number that is the same for all channels, or nothing if the channels have different numbers.
[[nodiscard]] std::optional<double> common_value(const PerChannel& numbers);

}  // namespace graft::passes::instance_norm
