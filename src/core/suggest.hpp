// Finds the allowed word that is nearest to a misspelled one, for "did you mean".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graft {

/// Returns the allowed word with the fewest edits, if these are few enough for a slip.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& allowed);

/// Returns a message such as "Elu has no attribute `aplha` (did you mean `alpha`?); its attributes are alpha", or "...;
/// it has no attributes". `where`, such as " in operator set 17", means that the attribute exists elsewhere, so it is
/// not a slip.
[[nodiscard]] std::string no_attribute(std::string_view owner, std::string_view name,
                                       const std::vector<std::string>& known, std::string_view where = {});

}  // namespace graft
