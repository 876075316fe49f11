// Checks that the parts of the work on a data set make a whole.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "graft/parts.hpp"

namespace graft {

/// Checks that parts of a range of samples, which separate processes have computed, together contain each sample
/// exactly once.
class CoveredSamples {
 public:
  /// `work` names the work in messages, for example "calibration".
  CoveredSamples(SampleRange whole, std::string_view work) : whole_(whole), work_(work) {}

  /// Adds a part. Throws Error (internal) if it is empty, extends beyond the whole range, or contains a sample of an
  /// earlier part.
  void add(SampleRange part);
  /// Throws Error (internal) naming the first missing sample, if there is one.
  void check_complete() const;
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  SampleRange whole_;
  std::string work_;
  std::map<std::int64_t, std::int64_t> parts_;  ///< The end of each part, by its begin.
  std::int64_t count_ = 0;
};

}  // namespace graft
