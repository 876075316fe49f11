// Parts of the work on a data set, which other processes or machines do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace graft {

/// The samples from `begin` to `end`, without `end`.
struct SampleRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
  friend bool operator==(const SampleRange&, const SampleRange&) = default;
};

/// Waits for a part and returns its bytes. The parts come in any order; after the last part it returns nothing.
using NextPart = std::function<std::optional<std::string>()>;

/// Starts the work on a range of samples in other processes and returns the function that waits for its parts.
using StartParts = std::function<NextPart(SampleRange)>;

}  // namespace graft
