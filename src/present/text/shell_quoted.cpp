// A shell interprets nothing inside single quotes.
#include "present/text/shell_quoted.hpp"

namespace graft::present {

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

}  // namespace graft::present
