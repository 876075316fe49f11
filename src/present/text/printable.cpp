// Decodes UTF-8 character by character.
#include "present/text/printable.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "core/utf8.hpp"

namespace graft::present {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t size = 0;  ///< Size in bytes; 0 if the text does not begin with valid UTF-8.
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80U) return {first, 1};
  const std::size_t size = (first & 0xE0U) == 0xC0U   ? 2
                           : (first & 0xF0U) == 0xE0U ? 3
                           : (first & 0xF8U) == 0xF0U ? 4
                                                      : 0;
  if (size == 0 || text.size() < size) return {};
  char32_t code = first & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (!is_utf8_continuation(text[i])) return {};
    code = code << 6U | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};  // the smallest code point by size
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < smallest.at(size) || code > 0x10FFFF || is_surrogate) return {};
  return {code, size};
}

bool is_harmful(char32_t code) {
  struct Range {
    char32_t first;
    char32_t last;
  };
  constexpr std::array<Range, 8> ranges{{{0x00, 0x08},
                                         {0x0B, 0x1F},
                                         {0x7F, 0x9F},
                                         {0x061C, 0x061C},
                                         {0x200B, 0x200F},
                                         {0x2028, 0x202E},
                                         {0x2060, 0x2069},
                                         {0xFEFF, 0xFEFF}}};
  for (const Range& range : ranges) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::size_t size = character.size == 0 ? 1 : character.size;
    if (character.size == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (is_harmful(character.code)) {
      result += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(character.code));
    } else {
      result += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return result;
}

}  // namespace graft::present
