// Finds the word that a misspelled one may stand for, for "did you mean" in messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graft {

/// Returns the allowed word with the smallest edit distance, or nothing if that distance is too large for a typing
/// error.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& allowed);

/// Returns the message that `owner` has no attribute `name`, such as "Elu has no attribute `aplha` (did you mean
/// `alpha`?); its attributes are alpha". `known` lists its attributes; without any, the message ends in "it has no
/// attributes". If the attribute exists elsewhere, `where` says where it is missing, such as " in operator set 17"; no
/// correction is then suggested.
[[nodiscard]] std::string no_attribute(std::string_view owner, std::string_view name,
                                       const std::vector<std::string>& known, std::string_view where = {});

}  // namespace graft
