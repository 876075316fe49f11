// "Did you mean": the nearest of the words that are allowed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graft {

/// The allowed word with the fewest edits, if they are few enough to be a slip.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& allowed);

}  // namespace graft
