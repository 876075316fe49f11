// Computes sums of squares, counts and the positions of the largest elements.
#include "verify/compare/output_figures.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "verify/compare/classifiers.hpp"
#include "verify/compare/figures.hpp"

namespace graft::verify {
namespace {

void add_errors(OutputFigures& figures, const std::vector<double>& expected, const std::vector<double>& found) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!figures.is_real) {
      figures.differing += expected[i] != found[i] ? 1 : 0;
    } else if (std::isfinite(expected[i]) && !std::isfinite(found[i])) {
      ++figures.not_finite;
    } else if (std::isfinite(expected[i])) {
      const double error = std::abs(expected[i] - found[i]);
      figures.largest_error = std::max(figures.largest_error, error);
      figures.signal += square_of(expected[i]);
      figures.noise += square_of(error);
    }
  }
}

}  // namespace

double decibels_of(const OutputFigures& figures) {
  if (figures.snr_db) return *figures.snr_db;
  return figures.largest_error == 0 ? perfect_db : -perfect_db;
}

void add_run(OutputFigures& figures, const OutputFigures& other) {
  figures.largest_error = std::max(figures.largest_error, other.largest_error);
  figures.elements += other.elements;
  if (figures.incomparable.empty()) figures.incomparable = other.incomparable;
  figures.differing += other.differing;
  figures.not_finite += other.not_finite;
  figures.rows += other.rows;
  figures.same_top += other.same_top;
  figures.signal += other.signal;
  figures.noise += other.noise;
  figures.snr_db = decibels_between(figures.signal, figures.noise);
}

void add_worst_run(OutputFigures& figures, const OutputFigures& other) {
  const OutputFigures worst = decibels_of(figures) <= decibels_of(other) ? figures : other;
  figures.judged_by = worst.judged_by;
  add_run(figures, other);
  figures.snr_db = worst.snr_db;
  figures.signal = worst.signal;
  figures.noise = worst.noise;
}

OutputFigures figures_of(const std::string& name, const onnx::TensorData& reference, const onnx::TensorData& found,
                         bool is_classifier) {
  OutputFigures figures;
  figures.name = name;
  figures.elements = reference.element_count();
  figures.is_real = is_floating_point(reference.type);
  const auto expected = reference.numbers();
  const auto given = found.numbers();
  if (reference.dims != found.dims) {
    figures.incomparable =
        fmt::format("dimensions differ: {} in the f32 model, {} in this model", reference.dims, found.dims);
    if (!figures.is_real) figures.differing = figures.elements;
    return figures;
  }
  if (!expected || !given || expected->size() != given->size()) return figures;
  add_errors(figures, *expected, *given);
  if (!figures.is_real) return figures;
  figures.snr_db = decibels_between(figures.signal, figures.noise);
  if (!is_classifier) return figures;
  const std::size_t columns = classes_of(reference.dims);
  if (columns < 2) return figures;
  for (std::size_t row = 0; row < expected->size(); row += columns) {
    const auto place_of_largest = [&](const std::vector<double>& numbers) {
      const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(row);
      return std::max_element(begin, begin + static_cast<std::ptrdiff_t>(columns)) - begin;
    };
    ++figures.rows;
    figures.same_top += place_of_largest(*expected) == place_of_largest(*given) ? 1 : 0;
  }
  return figures;
}

bool Score::is_better_than(const Score& other) const {
  constexpr double worth_it = 1;
  if (not_finite != other.not_finite) return not_finite < other.not_finite;
  return snr_db >= other.snr_db + worth_it;
}

Score score_of(const std::vector<OutputFigures>& outputs) {
  Score score{.not_finite = 0, .snr_db = perfect_db};
  for (const OutputFigures& output : outputs) {
    if (!output.is_real) continue;
    score.not_finite += output.not_finite;
    score.snr_db = std::min(score.snr_db, decibels_of(output));
  }
  return score;
}

}  // namespace graft::verify
