// The comparison of two tensors, and the figures of one, in words.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graft/report/comparison.hpp"
#include "graft/report/layers.hpp"
#include "graft/report/verify.hpp"

namespace graft::report {

/// Returns a clause about Difference::undecided: "4 of 404 elements differ where rounding alone makes the reference NaN
/// or infinite, so they are neither the same nor different".
[[nodiscard]] inline std::string undecided_text(const Difference& difference) {
  return fmt::format(
      "{} of {} elements differ where rounding alone makes the reference NaN or infinite, so they are "
      "neither the same nor different",
      difference.undecided, difference.count);
}

/// Returns a difference as text: "largest difference 2.4e-06 at [0, 4], relative 3.1e-05 at [1, 2]" or "3 of 20
/// elements differ, first at [0, 4]: 1.5 in the reference, 1.25 in the candidate; largest ...". Mentions elements that
/// are NaN in both tensors or undecided.
[[nodiscard]] inline std::string difference_text(const Difference& difference) {
  if (!difference.incomparable.empty()) return difference.incomparable;
  if (difference.selection) {
    std::string text = fmt::format(
        "the number of elements depends on rounding, so their values were compared without their order: of {} "
        "elements, {} {} no match, where rounding alone leaves up to {} without a match; largest difference of the "
        "matched elements {:.2g}",
        difference.count, difference.selection->without_partner,
        difference.selection->without_partner == 1 ? "has" : "have", difference.selection->between_draws,
        difference.max_absolute);
    if (difference.nan_disagreements != 0)
      text += fmt::format("; {} are NaN in the candidate only", difference.nan_disagreements);
    return text;
  }
  const auto [first_reference, first_candidate] = difference.first_integers
                                                      ? *difference.first_integers
                                                      : std::pair(fmt::format("{:.9g}", difference.first_reference),
                                                                  fmt::format("{:.9g}", difference.first_candidate));
  if (difference.is_choice && difference.infinity_disagreements == 0 && difference.nan_disagreements == 0) {
    if (difference.mismatched + difference.within_noise == 0) return "no difference";
    return fmt::format("{} of {} elements differ{}: {} in the reference, {} in the candidate",
                       difference.mismatched + difference.within_noise, difference.count,
                       difference.first_index.empty() ? "" : fmt::format(", first at {}", difference.first_index),
                       first_reference, first_candidate);
  }
  const auto largest = [&] {
    // The index of a scalar is omitted, and two equal indices are printed only once.
    const auto at = [](const std::vector<std::int64_t>& index) {
      return index.empty() ? std::string() : fmt::format(" at {}", index);
    };
    const bool same = difference.max_absolute_at == difference.max_relative_at;
    return fmt::format("largest difference {:.2g}{}, relative {:.2g}{}", difference.max_absolute,
                       same ? "" : at(difference.max_absolute_at), difference.max_relative,
                       at(difference.max_relative_at));
  };
  const std::string both_nan =
      difference.nan_agreements == 0
          ? ""
          : fmt::format("; {} of {} elements are NaN on both sides", difference.nan_agreements, difference.count);
  const std::string undecided = difference.undecided == 0 ? "" : "; " + undecided_text(difference);
  if (difference.equal()) {
    const std::string none = undecided.empty() ? "no difference" : "no other difference";
    return (difference.max_absolute == 0 ? none : largest()) + undecided + both_nan;
  }
  std::string text = fmt::format(
      "{} of {} elements differ{}: {} in the reference, {} in the candidate", difference.mismatched, difference.count,
      difference.first_index.empty() ? "" : fmt::format(", first at {}", difference.first_index), first_reference,
      first_candidate);
  if (difference.nan_disagreements != 0)
    text += fmt::format("; {} are NaN on one side only", difference.nan_disagreements);
  if (difference.infinity_disagreements != 0)
    text += fmt::format("; {} are infinite on one side only", difference.infinity_disagreements);
  if (difference.missed_snr_db && difference.snr_db) {
    text += fmt::format("; the signal to noise ratio is {:.1f} dB, and {:.3g} dB is required", *difference.snr_db,
                        *difference.missed_snr_db);
  }
  if (difference.is_shifted) text += "; most elements are off in the same direction, which rounding does not do";
  if (difference.max_absolute != 0) text += "; " + largest();
  return text + undecided + both_nan;
}

/// Returns a clause which states that an output has no verdict, and why. The reason is `not_compared` if it is not
/// empty. Otherwise, with `is_lost_in_noise`, it is that rounding alone changes the reference as much as the output
/// differs in the run `worst`; with `is_empty`, that the output is empty in all runs; else, that no element is finite
/// in both models.
[[nodiscard]] inline std::string nothing_compared_text(const std::string& output, const std::string& not_compared,
                                                       bool is_lost_in_noise, bool is_empty, const Difference& worst) {
  if (!not_compared.empty() || !is_lost_in_noise) {
    return fmt::format("output '{}' was not compared: {}", output,
                       !not_compared.empty() ? not_compared
                       : is_empty            ? "it is empty in all runs"
                                             : "it has no element that is finite in both models in any run");
  }
  const std::string why =
      worst.undecided == 0 ? "it differs, but rounding alone changes the reference as much" : undecided_text(worst);
  return fmt::format("it is undecided whether output '{}' is the same: {}", output, why);
}

[[nodiscard]] inline std::string nothing_compared_text(const ComparedOutput& output) {
  return nothing_compared_text(output.reference.name, output.not_compared, output.is_lost_in_noise(),
                               output.is_empty_in_all_runs(), output.worst);
}

/// Returns a text such as "-1.5 to 3.2", "-1.5 to 3.2, 2 NaN" or "no finite value".
[[nodiscard]] inline std::string range_text(const TensorRange& range) {
  std::string text = range.lowest && range.highest ? fmt::format("{:.4g} to {:.4g}", *range.lowest, *range.highest)
                     : range.count == 0            ? "empty"
                                                   : "no finite value";
  if (range.nan != 0) text += fmt::format(", {} NaN", range.nan);
  if (range.infinite != 0) text += fmt::format(", {} infinite", range.infinite);
  return text;
}

/// Returns for example "12 overflow, 3 underflow"; empty if all counts are 0.
[[nodiscard]] inline std::string rounding_text(const RoundingEffect& effect) {
  std::string text;
  const auto add = [&](std::int64_t count, std::string_view what) {
    if (count != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(effect.overflow, "overflow");
  add(effect.saturated, "saturated");
  add(effect.underflow, "underflow");
  add(effect.subnormal, "subnormal");
  return text;
}

}  // namespace graft::report
