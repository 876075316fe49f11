// Parts of the work on a data set, which other processes or machines do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace graft {

/// The samples from `begin` (included) to `end` (excluded).
struct SampleRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
  friend bool operator==(const SampleRange&, const SampleRange&) = default;
};

/// Waits for the result of one part of a range of samples and returns its bytes. The results come in any order; after
/// the last one, the function returns nothing.
using NextPart = std::function<std::optional<std::string>()>;

/// Starts the work on a range of samples in other processes, which divide the range into parts. Returns the function
/// that waits for the results of the parts.
using StartParts = std::function<NextPart(SampleRange)>;

}  // namespace graft
