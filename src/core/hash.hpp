// A hash that depends only on its input and is the same in every library and on every platform.
#pragma once

#include <cstdint>
#include <string_view>

namespace graft {

/// Returns the 32-bit FNV-1a hash.
[[nodiscard]] constexpr std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

}  // namespace graft
