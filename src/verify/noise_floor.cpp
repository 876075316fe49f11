// The largest deviations of slices.
#include "verify/noise_floor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/compare.hpp"
#include "verify/pieces.hpp"

namespace graft {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

/// Of 8 bits: what rounding to a step gave, where a deviation has a size.
bool has_steps(ElementType type) { return type == ElementType::i8 || type == ElementType::u8; }

double deviation(double reference, double moved, bool has_size) {
  if (reference == moved || (std::isnan(reference) && std::isnan(moved))) return 0;
  return has_size && std::isfinite(reference) && std::isfinite(moved) ? std::abs(reference - moved) : unlimited;
}

}  // namespace

void NoiseFloor::add(const TensorData& reference, const TensorData& moved) {
  if (!is_real(reference.type) || reference.type != moved.type) return;
  ++runs_;
  if (reference.dims != moved.dims) {
    has_other_dims_ = true;
    return;
  }
  if (slices_.empty()) {
    dims_ = reference.dims.empty() ? std::vector<std::int64_t>{1} : reference.dims;
    for (const std::int64_t size : dims_) slices_.emplace_back(static_cast<std::size_t>(size), 0.0);
    largest_reference_ = largest_finite(reference);
  }
  const bool has_size = is_floating_point(reference.type) || has_steps(reference.type);
  std::vector<std::int64_t> index(dims_.size(), 0);
  for_each_piece(reference.element_count(), [&](std::int64_t begin, std::int64_t count) {
    const auto expected = piece_of(reference, begin, count).numbers();
    const auto found = piece_of(moved, begin, count).numbers();
    for (std::size_t i = 0; i < expected->size(); ++i) {
      const double off = deviation((*expected)[i], (*found)[i], has_size);
      if (off > 0) {
        if (std::isfinite(off)) largest_ = std::max(largest_, off);
        has_unlimited_ = has_unlimited_ || !std::isfinite(off);
        for (std::size_t axis = 0; axis < dims_.size(); ++axis) {
          double& slice = slices_[axis][static_cast<std::size_t>(index[axis])];
          slice = std::max(slice, off);
        }
      }
      for (std::size_t axis = dims_.size(); axis-- > 0;) {
        if (++index[axis] < dims_[axis]) break;
        index[axis] = 0;
      }
    }
  });
}

double NoiseFloor::at(std::int64_t position) const {
  if (slices_.empty()) return 0;
  double smallest = unlimited;
  for (std::size_t axis = dims_.size(); axis-- > 0;) {
    smallest = std::min(smallest, slices_[axis][static_cast<std::size_t>(position % dims_[axis])]);
    position /= dims_[axis];
  }
  return smallest;
}

double NoiseFloor::share() const { return largest_ == 0 ? 0 : largest_ / largest_reference_; }

bool NoiseFloor::says_little() const {
  constexpr double much = 0.01;
  return has_other_dims_ || has_unlimited_ || share() > much;
}

std::string NoiseFloor::to_string() const {
  std::string text = fmt::format("where its arithmetic rounds differently ({} runs) the reference itself ", runs_);
  if (has_other_dims_) return text + "gives other dimensions";
  constexpr double percent = 100;
  text += fmt::format("moves by up to {:.2g} ({:.2g} % of its largest)", largest_, percent * share());
  if (has_unlimited_) text += ", and elements become NaN, infinite or other integers";
  return text + fmt::format("; {:g} times that is allowed", factor);
}

}  // namespace graft
