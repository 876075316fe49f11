// Inside single quotes a shell interprets no character.
#include "core/shell_quoted.hpp"

namespace graft {

std::string shell_quoted(std::string_view text, std::string_view quote) {
  std::string result = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      result += quote;
    } else {
      result += letter;
    }
  }
  return result + "'";
}

std::string shell_argument(const std::string& text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+@%:,";
  return !text.empty() && text.find_first_not_of(plain) == std::string::npos ? text : shell_quoted(text);
}

std::string shell_path(const std::filesystem::path& path) {
  const std::string text = path.string();
  return shell_argument(text.starts_with('-') ? "./" + text : text);
}

}  // namespace graft
