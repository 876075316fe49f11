// Splits the text of nodes and patterns into tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "graft/error.hpp"

namespace graft::onnx {

struct Token {
  enum class Kind : std::uint8_t { name, number, text, mark, end_of_line, end };
  Kind kind = Kind::end;
  /// The text of a token: a name, a number as written, the content of a quoted string, or a mark like "(" or "::".
  std::string text;
  int line = 1;
  int column = 1;
  std::size_t position = 0;  ///< The offset of the token in the whole text.

  [[nodiscard]] bool is(std::string_view mark) const { return kind == Kind::mark && text == mark; }
};

/// Reads tokens one after the other. Names are letters, digits, `_`, `.` and `/`. A line ends at a newline or `;`, not
/// inside parentheses or brackets. `#` starts a comment.
class Lexer {
 public:
  /// Creates a lexer for `text`, which must outlive it. `what` names the text in messages.
  Lexer(std::string_view text, std::string what);

  [[nodiscard]] const Token& peek() const { return current_; }
  Token next();
  bool accept(std::string_view mark);
  void expect(std::string_view mark);
  [[nodiscard]] std::string expect_name(std::string_view what);
  /// Throws Error naming the text, and the line and column of the current token.
  [[noreturn]] void fail(const std::string& message) const { fail_at(current_, message); }
  [[noreturn]] void fail_at(const Token& token, const std::string& message) const;

 private:
  void advance();

  std::string_view text_;
  std::string what_;
  std::size_t position_ = 0;
  int line_ = 1;
  int column_ = 1;
  int depth_ = 0;
  Token current_;
};

}  // namespace graft::onnx
