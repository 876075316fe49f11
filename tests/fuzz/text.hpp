// Changes of a text, line by line and word by word: what changes of bytes seldom do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace graft::fuzz {

/// Makes one to four changes: words exchanged for those given, lines doubled, removed and moved in. The same seed makes
/// the same changes.
[[nodiscard]] std::string change_text(std::string_view text, std::span<const std::string_view> words,
                                      std::uint64_t seed);

}  // namespace graft::fuzz
