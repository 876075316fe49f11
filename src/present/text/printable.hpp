// Makes text from other people, such as names in a model, safe to show on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace graft::present {

/// Escapes characters that control a terminal or make a string look like another one, as JSON does: control characters
/// except tab and newline (ESC becomes \u001b), marks of text direction (U+061C, U+200E, U+200F, U+202A to U+202E,
/// U+2066 to U+2069), line separators (U+2028, U+2029) and other invisible characters (U+200B to U+200D, U+2060 to
/// U+2065, U+FEFF). A byte that is not valid UTF-8 becomes \x9b. Valid JSON keeps its meaning.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace graft::present
