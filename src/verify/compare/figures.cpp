// Computes ranges and error figures in one pass over each tensor, in pieces.
#include "verify/compare/figures.hpp"

#include <algorithm>
#include <cmath>

#include "graft/error.hpp"
#include "onnx/elements.hpp"
#include "verify/compare/pieces.hpp"

namespace graft::verify {
namespace {

/// Returns the index of the bin in ErrorHistogram for an error that is this share of the largest element: bin 0 for no
/// error, the last bin for NaN and infinity, and one bin per power of ten between them.
std::size_t bin_of(double share) {
  if (share == 0) return 0;
  if (!std::isfinite(share)) return ErrorHistogram::names.size() - 1;
  constexpr double smallest_decade = -7;
  const double decade = std::floor(std::log10(share)) - smallest_decade + 2;
  return static_cast<std::size_t>(std::clamp(decade, 1.0, static_cast<double>(ErrorHistogram::names.size() - 2)));
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

std::optional<double> decibels_between(SumOfSquares signal, SumOfSquares noise) {
  if (!(signal > 0) || !(noise > 0)) return std::nullopt;
  const auto ratio = static_cast<double>(10 * std::log10(signal / noise));
  return std::isfinite(ratio) ? std::optional(ratio) : std::nullopt;
}

TensorRange RangeTally::of(std::int64_t count) const {
  TensorRange range;
  range.count = count;
  range.nan = nan_;
  range.infinite = infinite_;
  range.zeros = zeros_;
  if (lowest_ <= highest_) {
    range.lowest = lowest_;
    range.highest = highest_;
  }
  range.sum = sum_;
  range.squares = squares_;
  return range;
}

TensorRange range_of(const onnx::TensorData& tensor) {
  RangeTally tally;
  for_each_number(tensor, [&](auto number) { tally.add(static_cast<double>(number)); });
  return tally.of(tensor.element_count());
}

ErrorFigures error_figures(const onnx::TensorData& reference, const onnx::TensorData& candidate) {
  ErrorFigures figures;
  const std::int64_t elements = reference.element_count();
  if (elements != candidate.element_count() || !is_real(reference.type) || !is_real(candidate.type)) {
    throw Error(Error::Kind::internal, "error_figures: the tensors have different sizes, or are not numeric");
  }
  const double largest = range_of(reference).largest();
  SumOfSquares signal = 0;
  SumOfSquares noise = 0;
  std::int64_t finite = 0;
  for_each_piece(elements, [&](std::int64_t begin, std::int64_t count) {
    const auto expected = piece_of(reference, begin, count).numbers();
    const auto found = piece_of(candidate, begin, count).numbers();
    for (std::size_t i = 0; i < expected->size(); ++i) {
      const double a = (*expected)[i];
      const double b = (*found)[i];
      const double error = same(a, b) ? 0 : std::abs(a - b);
      const double share = error == 0 ? 0 : std::isfinite(error) && largest > 0 ? error / largest : error;
      ++figures.histogram.counts.at(bin_of(share));
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      ++finite;
      signal += square_of(a);
      noise += square_of(error);
    }
  });
  figures.snr_db = decibels_between(signal, noise);
  if (finite > 0) {
    figures.root_mean_square = static_cast<double>(std::sqrt(noise / static_cast<SumOfSquares>(finite)));
  }
  return figures;
}

}  // namespace graft::verify
