// Arithmetic on the statistics of a channel: what a network computes from x, its mean and its variance, as formulas.
//
// There are many orders in which (x - mean) / sqrt(variance + epsilon) * scale + bias can be written. Followed as
// formulas, they all end in the same one.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace graft::passes::instance_norm {

/// One number for all channels, or one for each.
using PerChannel = std::vector<double>;

/// mean^i * variance^j * deviation^k, where deviation = sqrt(variance + epsilon).
struct Powers {
  int mean = 0;
  int variance = 0;
  int deviation = 0;
  friend auto operator<=>(const Powers&, const Powers&) = default;  // NOLINT(modernize-use-nullptr): it errs
};

/// A sum of such products, each with a factor for each channel.
class Statistic {
 public:
  Statistic() = default;
  explicit Statistic(const PerChannel& constant) { add({}, constant); }
  Statistic(Powers powers, const PerChannel& factor) { add(powers, factor); }

  [[nodiscard]] const std::map<Powers, PerChannel>& terms() const { return terms_; }
  [[nodiscard]] bool is_zero() const { return terms_.empty(); }
  /// The factor of one product; nothing where it does not occur.
  [[nodiscard]] std::optional<PerChannel> factor(Powers powers) const;
  [[nodiscard]] bool is_constant() const { return is_zero() || (terms_.size() == 1 && factor({}).has_value()); }

  friend Statistic operator+(const Statistic& a, const Statistic& b);
  friend Statistic operator*(const Statistic& a, const Statistic& b);
  friend Statistic operator-(const Statistic& a);
  /// 1 / a, where a is one product of constants and deviations.
  [[nodiscard]] std::optional<Statistic> reciprocal() const;

  /// "1.02 variance + 1e-05".
  [[nodiscard]] std::string to_string() const;

 private:
  void add(Powers powers, const PerChannel& factor);

  std::map<Powers, PerChannel> terms_;
};

/// square * x^2 + linear * x + rest.
struct ChannelFormula {
  Statistic square;
  Statistic linear;
  Statistic rest;

  [[nodiscard]] bool has_x() const { return !square.is_zero() || !linear.is_zero(); }
  /// Its average over the elements of the channel.
  [[nodiscard]] Statistic average() const;

  friend ChannelFormula operator+(const ChannelFormula& a, const ChannelFormula& b);
  friend ChannelFormula operator-(const ChannelFormula& a);
  /// Nothing where x would come in a higher power than the second.
  friend std::optional<ChannelFormula> product(const ChannelFormula& a, const ChannelFormula& b);
};

/// All channels have the same number.
[[nodiscard]] std::optional<double> common_value(const PerChannel& numbers);

}  // namespace graft::passes::instance_norm
