// Collects the largest deviations of slices over several draws.
#include "verify/judge/noise_floor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "verify/compare/pieces.hpp"

namespace graft::verify {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

/// Returns whether the type is i8 or u8. Such integers come from rounding to steps, so a difference between two of them
/// is a magnitude; other integers are identifiers.
bool has_steps(onnx::ElementType type) { return type == onnx::ElementType::i8 || type == onnx::ElementType::u8; }

/// Returns the width of the smallest range that contains 0 and all finite elements.
double range_with_zero(const onnx::TensorData& tensor) {
  double lowest = 0;
  double highest = 0;
  for_each_piece(tensor.element_count(), [&](std::int64_t begin, std::int64_t count) {
    const auto numbers = piece_of(tensor, begin, count).numbers();
    for (const double number : *numbers) {
      if (!std::isfinite(number)) continue;
      lowest = std::min(lowest, number);
      highest = std::max(highest, number);
    }
  });
  return highest - lowest;
}

double deviation(double reference, double moved, bool has_size) {
  if (reference == moved || (std::isnan(reference) && std::isnan(moved))) return 0;
  return has_size && std::isfinite(reference) && std::isfinite(moved) ? std::abs(reference - moved) : unlimited;
}

}  // namespace

std::optional<std::size_t> only_other_axis(const std::vector<std::int64_t>& left,
                                           const std::vector<std::int64_t>& right) {
  if (left.size() != right.size()) return std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t axis = 0; axis < left.size(); ++axis) {
    if (left[axis] == right[axis]) continue;
    if (found) return std::nullopt;
    found = axis;
  }
  return found;
}

void NoiseFloor::add(const onnx::TensorData& reference, const onnx::TensorData& still, const onnx::TensorData& moved) {
  if (!is_real(reference.type) || reference.type != moved.type) return;
  if (still.dims != reference.dims && still.dims == moved.dims) return;
  ++runs_;
  if (reference.dims != moved.dims) return add_other_dims(reference, moved);
  if (!deviations_) {
    deviations_.emplace(reference.dims);
    largest_reference_ = largest_finite(reference);
    range_ = range_with_zero(reference);
    unlimited_.resize(static_cast<std::size_t>(reference.element_count()));
  }
  const bool has_size = is_floating_point(reference.type) || has_steps(reference.type);
  const onnx::TensorData& before = still.dims == reference.dims ? still : reference;
  std::int64_t others = 0;
  std::int64_t shift = 0;
  for_each_piece(reference.element_count(), [&](std::int64_t begin, std::int64_t count) {
    const auto compared = piece_of(reference, begin, count).numbers();
    const auto expected = piece_of(before, begin, count).numbers();
    const auto found = piece_of(moved, begin, count).numbers();
    for (std::size_t i = 0; i < expected->size(); ++i) {
      if (!has_size) {
        add_integer((*compared)[i]);
        add_integer((*found)[i]);
      }
      if (has_steps(reference.type)) {
        if ((*found)[i] != (*expected)[i]) shift += (*found)[i] > (*expected)[i] ? 1 : -1;
      }
      const double off = deviation((*expected)[i], (*found)[i], has_size);
      const auto position = begin + static_cast<std::int64_t>(i);
      if (off != unlimited) {
        if (off > 0) deviations_->raise(position, off);
        continue;
      }
      has_unlimited_ = true;
      unlimited_[static_cast<std::size_t>(position)] = true;
      if (has_size) {
        has_other_kind_ = true;
        continue;
      }
      const double other = (*found)[i] != (*compared)[i] ? (*found)[i] : (*expected)[i];
      others_[position].push_back(other);
      ++others;
    }
  });
  most_others_ = std::max(most_others_, others);
  most_shifted_ = std::max(most_shifted_, std::abs(shift));
}

void NoiseFloor::add_integer(double integer) {
  constexpr std::size_t most = 32;  // More than the draws can produce for one element.
  if (integers_.size() < most) integers_.insert(integer);
}

void NoiseFloor::add_other_dims(const onnx::TensorData& reference, const onnx::TensorData& moved) {
  const bool is_first = !has_other_dims_;
  has_other_dims_ = true;
  const std::optional<std::size_t> axis = only_other_axis(reference.dims, moved.dims);
  is_selection_ = axis && (is_first || (is_selection_ && *axis == selection_.axis));
  if (!is_selection_) return;
  const std::int64_t size = moved.dims[*axis];
  if (is_first) selection_ = {.axis = *axis, .lowest = reference.dims[*axis], .highest = reference.dims[*axis]};
  selection_.lowest = std::min(selection_.lowest, size);
  selection_.highest = std::max(selection_.highest, size);
  selection_elements_ = std::max({selection_elements_, reference.element_count(), moved.element_count()});
  selection_.between_draws =
      std::max(selection_.between_draws, find_partners(reference, moved, *axis, tolerance_).without);
}

std::optional<SelectionDifference> NoiseFloor::selection() const {
  return has_other_dims_ && is_selection_ ? std::optional(selection_) : std::nullopt;
}

double NoiseFloor::at(std::int64_t position) const {
  if (!deviations_) return 0;
  return unlimited_[static_cast<std::size_t>(position)] ? unlimited : finite_at(position);
}

bool NoiseFloor::has_given(std::int64_t position, double integer) const {
  const auto given = others_.find(position);
  return given != others_.end() &&
         std::find(given->second.begin(), given->second.end(), integer) != given->second.end();
}

double NoiseFloor::expected_new() const {
  std::size_t given_once = 0;
  for (const auto& [position, integers] : others_) {
    for (const double integer : integers) {
      if (std::count(integers.begin(), integers.end(), integer) == 1) ++given_once;
    }
    // If every draw returned another integer, the reference's own integer occurred only once.
    if (integers.size() == runs_) ++given_once;
  }
  return static_cast<double>(given_once) / static_cast<double>(runs_ + 1);
}

double NoiseFloor::share() const { return largest() == 0 ? 0 : largest() / largest_reference_; }

bool NoiseFloor::is_suspect() const {
  constexpr double much = 0.01;
  const auto others = static_cast<double>(most_others_);
  return has_other_dims_ || has_other_kind_ || share() > much || others > much * static_cast<double>(unlimited_.size());
}

bool NoiseFloor::says_little() const {
  constexpr double much = 0.001;
  return has_other_dims_ || has_unlimited_ || share() > much;
}

bool NoiseFloor::allows_any_integer() const {
  const auto elements = static_cast<std::int64_t>(unlimited_.size());
  if (2 * most_others_ > elements) return true;
  if (factor * expected_new() > most_unseen * static_cast<double>(elements)) return true;
  const auto is_undetermined = [&](const std::vector<double>& integers) {
    const std::size_t own = 1;
    return std::set<double>(integers.begin(), integers.end()).size() + own >= integers_.size();
  };
  return 2 * std::count_if(others_.begin(), others_.end(),
                           [&](const auto& other) { return is_undetermined(other.second); }) >
         elements;
}

bool NoiseFloor::allows_anything() const {
  if (has_other_dims_) return is_selection_ && 2 * selection_.between_draws >= selection_elements_;
  if (!deviations_) return false;
  if (most_others_ > 0) return allows_any_integer();
  const auto elements = static_cast<std::int64_t>(unlimited_.size());
  std::int64_t lost = 0;
  for (std::int64_t i = 0; i < elements; ++i) lost += 2 * at(i) > range_ ? 1 : 0;
  return 2 * lost > elements;
}

std::string NoiseFloor::to_string() const {
  std::string where = fmt::format("where its arithmetic rounds differently ({} runs", runs_);
  if (!confirmed_by_.empty()) where += fmt::format(", confirmed by {}", confirmed_by_);
  where += ") ";
  if (most_others_ > 0) {
    return where + fmt::format(
                       "up to {} of {} elements of the reference itself become other integers; up to {:g} times as "
                       "many elements may differ, if their values are among these integers",
                       most_others_, unlimited_.size(), factor);
  }
  std::string text = where + "the reference itself ";
  if (is_selection_) {
    return text + fmt::format("has {} to {} along axis {}, and up to {} of its elements have no match",
                              selection_.lowest, selection_.highest, selection_.axis, selection_.between_draws);
  }
  if (has_other_dims_) return text + "changes its dimensions";
  if (largest() == 0 && !has_unlimited_) return text + "stays the same";
  constexpr double percent = 100;
  text += fmt::format("changes by up to {:.2g} ({:.2g} % of its largest value)", largest(), percent * share());
  if (has_unlimited_) text += ", and elements become NaN or infinite";
  return text + fmt::format("; up to {:g} times this change is allowed", factor);
}

void confirm(const onnx::TensorData& reference, const onnx::TensorData& candidate, const Tolerance& tolerance,
             const NoiseFloor& second, std::string_view engine, Difference& difference, NoiseFloor& floor,
             bool is_coarser) {
  if (second.runs() == 0) {
    floor.set_unconfirmed(
        fmt::format("{} cannot confirm this: it cannot run the reference with added rounding", engine));
    return;
  }
  Difference again = compare(reference, candidate, tolerance, &second);
  if (again.equal() && (again.undecided == 0 || difference.undecided != 0)) {
    if (is_coarser && second.is_suspect()) {
      floor.set_unconfirmed(
          fmt::format("{} cannot confirm this: it measures f64 tensors with the rounding of f32", engine));
    } else {
      floor.set_confirmed_by(engine);
    }
  } else {
    difference = std::move(again);
    floor = second;
    floor.set_unconfirmed(
        fmt::format("{} measured this, and does not confirm that rounding explains the difference", engine));
  }
}

std::optional<report::NoiseFloor> summary_of(const std::optional<NoiseFloor>& floor, const Difference& difference) {
  if (!floor) return std::nullopt;
  return report::NoiseFloor{.largest = floor->largest(),
                            .share = floor->share(),
                            .factor = NoiseFloor::factor,
                            .runs = floor->runs(),
                            .has_other_dims = floor->has_other_dims(),
                            .has_unlimited = floor->has_unlimited(),
                            .says_little = floor->says_little(),
                            .needs_confirmation = needs_confirmation(difference, *floor),
                            .why_unconfirmed = floor->why_unconfirmed(),
                            .text = floor->to_string()};
}

}  // namespace graft::verify
