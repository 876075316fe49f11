// Formats the sizes of files and weights for messages.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace graft {

/// Returns the size with a decimal unit, such as "712.7 kB".
[[nodiscard]] inline std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array units{"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  for (; value >= 999.95 && unit + 1 < units.size(); ++unit) value /= 1000;
  return fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace graft
