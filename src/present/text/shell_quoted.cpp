// Within single quotes a shell changes nothing.
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

}  // namespace graft::present
