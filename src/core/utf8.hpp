// Classifies bytes of UTF-8.
#pragma once

namespace graft {

/// Returns whether the byte continues a multi-byte character, that is, does not begin one.
[[nodiscard]] constexpr bool is_utf8_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

}  // namespace graft
