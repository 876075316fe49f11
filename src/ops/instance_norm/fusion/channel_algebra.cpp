// Sums and products of the statistics of a channel.
#include "ops/instance_norm/fusion/channel_algebra.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace graft::passes::instance_norm {
namespace {

/// Applies an operation element by element. A single number applies to all channels.
template <class Operation>
PerChannel combined(const PerChannel& a, const PerChannel& b, Operation operation) {
  PerChannel result(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = operation(a.size() == 1 ? a[0] : a[i], b.size() == 1 ? b[0] : b[i]);
  }
  return result;
}

}  // namespace

std::optional<double> common_value(const PerChannel& numbers) {
  if (numbers.empty() || std::any_of(numbers.begin(), numbers.end(), [&](double n) { return n != numbers[0]; })) {
    return std::nullopt;
  }
  return numbers[0];
}

void Statistic::add(Powers powers, const PerChannel& factor) {
  PerChannel& sum = terms_.try_emplace(powers, PerChannel{0.0}).first->second;
  // Terms that cancel in exact arithmetic leave a rounding error of their constants, which is treated as zero.
  sum = combined(sum, factor, [](double a, double b) {
    const double total = a + b;
    return std::abs(total) <= 1e-7 * std::max(std::abs(a), std::abs(b)) ? 0.0 : total;
  });
  if (std::all_of(sum.begin(), sum.end(), [](double n) { return n == 0; })) terms_.erase(powers);
}

std::optional<PerChannel> Statistic::factor(Powers powers) const {
  const auto found = terms_.find(powers);
  return found == terms_.end() ? std::nullopt : std::optional(found->second);
}

Statistic operator+(const Statistic& a, const Statistic& b) {
  Statistic result = a;
  for (const auto& [powers, factor] : b.terms_) result.add(powers, factor);
  return result;
}

Statistic operator*(const Statistic& a, const Statistic& b) {
  Statistic result;
  for (const auto& [p, f] : a.terms_) {
    for (const auto& [q, g] : b.terms_) {
      result.add({p.mean + q.mean, p.variance + q.variance, p.deviation + q.deviation},
                 combined(f, g, [](double x, double y) { return x * y; }));
    }
  }
  return result;
}

Statistic operator-(const Statistic& a) { return a * Statistic(PerChannel{-1.0}); }

std::optional<Statistic> Statistic::reciprocal() const {
  if (terms_.size() != 1) return std::nullopt;
  const auto& [powers, factor] = *terms_.begin();
  const bool has_zero = std::any_of(factor.begin(), factor.end(), [](double n) { return n == 0; });
  if (powers.mean != 0 || powers.variance != 0 || has_zero) return std::nullopt;
  return Statistic({0, 0, -powers.deviation}, combined({1.0}, factor, [](double x, double y) { return x / y; }));
}

std::string Statistic::to_string() const {
  std::string text;
  for (auto term = terms_.rbegin(); term != terms_.rend(); ++term) {
    const auto& [powers, factor] = *term;
    if (!text.empty()) text += " + ";
    const auto common = common_value(factor);
    const bool is_number = powers == Powers{};
    if (!common) text += is_number ? "a constant for each channel" : "a factor for each channel";
    if (common && (is_number || *common != 1)) text += fmt::format("{:.6g}", *common);
    const auto name = [&](const char* what, int power) {
      if (power == 0) return;
      text += fmt::format("{}{}", text.empty() || text.ends_with(' ') ? "" : " ", what);
      if (power != 1) text += fmt::format("^{}", power);
    };
    name("mean", powers.mean);
    name("variance", powers.variance);
    name("deviation", powers.deviation);
  }
  return text.empty() ? "0" : text;
}

Statistic ChannelFormula::average() const {
  const Statistic mean({1, 0, 0}, {1.0});
  const Statistic mean_of_squares = Statistic({0, 1, 0}, {1.0}) + mean * mean;
  return square * mean_of_squares + linear * mean + rest;
}

ChannelFormula operator+(const ChannelFormula& a, const ChannelFormula& b) {
  return {a.square + b.square, a.linear + b.linear, a.rest + b.rest};
}

ChannelFormula operator-(const ChannelFormula& a) { return {-a.square, -a.linear, -a.rest}; }

std::optional<ChannelFormula> product(const ChannelFormula& a, const ChannelFormula& b) {
  const bool too_high = (!a.square.is_zero() && b.has_x()) || (!b.square.is_zero() && a.has_x());
  if (too_high) return std::nullopt;
  return ChannelFormula{a.square * b.rest + a.linear * b.linear + a.rest * b.square,
                        a.linear * b.rest + a.rest * b.linear, a.rest * b.rest};
}

}  // namespace graft::passes::instance_norm
