// Stores the largest number of each slice of a tensor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace graft::verify {

/// Stores the largest number of each slice of a tensor. A slice consists of all elements with the same index along one
/// axis; there are slices for every axis. Each channel therefore has its own maximum, whichever axis is the channel
/// axis.
class SliceMaxima {
 public:
  /// Creates maxima of 0 for a tensor of shape `dims`. Slices of fewer than `fewest` elements have no maximum of their
  /// own; at() uses the maximum of the whole tensor for them.
  explicit SliceMaxima(std::vector<std::int64_t> dims, std::int64_t fewest = 1) : dims_(std::move(dims)) {
    std::int64_t count = 1;
    for (const std::int64_t size : dims_) count *= size;
    for (const std::int64_t size : dims_) {
      const bool speaks_for_itself = size > 0 && count / size >= fewest;
      slices_.emplace_back(speaks_for_itself ? static_cast<std::size_t>(size) : 0, 0.0);
    }
  }

  void raise(std::int64_t position, double number) {
    whole_ = std::max(whole_, number);
    for (std::size_t axis = dims_.size(); axis-- > 0; position /= dims_[axis]) {
      if (slices_[axis].empty()) continue;
      double& slice = slices_[axis][static_cast<std::size_t>(position % dims_[axis])];
      slice = std::max(slice, number);
    }
  }

  /// Returns the smallest of the maxima of the slices that contain the element at a row-major position.
  [[nodiscard]] double at(std::int64_t position) const {
    double smallest = whole_;
    for (std::size_t axis = dims_.size(); axis-- > 0; position /= dims_[axis]) {
      if (slices_[axis].empty()) continue;
      smallest = std::min(smallest, slices_[axis][static_cast<std::size_t>(position % dims_[axis])]);
    }
    return smallest;
  }

  /// Returns the maximum of the whole tensor.
  [[nodiscard]] double whole() const { return whole_; }

 private:
  std::vector<std::int64_t> dims_;
  std::vector<std::vector<double>> slices_;  ///< The maxima by axis; empty for axes that are ignored.
  double whole_ = 0;
};

}  // namespace graft::verify
