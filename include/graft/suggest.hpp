// Finds the allowed word that is nearest to a misspelled one, for "did you mean".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graft {

/// Returns the allowed word with the fewest edits, if these are few enough for a slip.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& allowed);

}  // namespace graft
