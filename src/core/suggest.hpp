// "Did you mean": the nearest of the words that are allowed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graft {

/// The allowed word with the fewest edits, if they are few enough to be a slip.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& allowed);

/// "Elu has no attribute `aplha` (did you mean `alpha`?); its attributes are alpha", or "it has none". `where`, as
/// " in operator set 17", says that it has the attribute elsewhere: then it is no slip.
[[nodiscard]] std::string no_attribute(std::string_view owner, std::string_view name,
                                       const std::vector<std::string>& known, std::string_view where = {});

}  // namespace graft
