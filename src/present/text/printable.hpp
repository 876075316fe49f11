// Text that may hold what somebody else wrote, such as names in a model, made safe to show.
#pragma once

#include <string>
#include <string_view>

namespace graft::present {

/// With what a terminal acts on, or what makes a text look like another, as JSON writes it: control characters but for
/// tabs and ends of lines (ESC becomes \u001b), marks of direction (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to
/// U+2069) and separators of lines (U+2028, U+2029). A byte that is no UTF-8 becomes \x9b. Of JSON text it leaves the
/// meaning as it is.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace graft::present
