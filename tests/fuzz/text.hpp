// Changes lines and words of a text; changes of bytes rarely produce a valid file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace graft::fuzz {

/// Applies one to four changes: replaces words by those given, and duplicates, removes and moves lines. The same seed
/// applies the same changes.
[[nodiscard]] std::string change_text(std::string_view text, std::span<const std::string_view> words,
                                      std::uint64_t seed);

}  // namespace graft::fuzz
