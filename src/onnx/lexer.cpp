// Splits the text of nodes and patterns into tokens.
#include "onnx/lexer.hpp"

#include <fmt/format.h>

#include <cctype>
#include <utility>

namespace graft::onnx {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_name(char c) { return starts_name(c) || is_digit(c) || c == '.' || c == '/'; }

}  // namespace

Lexer::Lexer(std::string_view text, std::string what) : text_(text), what_(std::move(what)) { advance(); }

Token Lexer::next() {
  Token token = std::move(current_);
  advance();
  return token;
}

bool Lexer::accept(std::string_view mark) {
  if (!current_.is(mark)) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view mark) {
  if (!accept(mark)) fail(fmt::format("`{}` is missing", mark));
}

std::string Lexer::expect_name(std::string_view what) {
  if (current_.kind != Token::Kind::name) fail(fmt::format("{} is missing", what));
  return next().text;
}

void Lexer::fail_at(const Token& token, const std::string& message) const {
  const std::string found = token.kind == Token::Kind::end           ? "the end"
                            : token.kind == Token::Kind::end_of_line ? "the end of the line"
                                                                     : "`" + token.text + "`";
  throw Error(fmt::format("{}, line {}, column {}: {}; found {}", what_, token.line, token.column, message, found));
}

void Lexer::advance() {
  const auto at = [&](std::size_t ahead) { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; };
  const auto skip = [&](std::size_t count) {
    for (; count > 0 && position_ < text_.size(); --count) {
      ++column_;
      if (text_[position_++] == '\n') {
        ++line_;
        column_ = 1;
      }
    }
  };
  for (;;) {
    if (at(0) == '#') {
      while (position_ < text_.size() && at(0) != '\n') skip(1);
    } else if (at(0) == ' ' || at(0) == '\t' || at(0) == '\r' || (at(0) == '\n' && depth_ > 0)) {
      skip(1);
    } else {
      break;
    }
  }
  current_ = {Token::Kind::end, "", line_, column_, position_};
  if (position_ >= text_.size()) return;
  const std::size_t start = position_;
  const char c = at(0);
  const auto take = [&](Token::Kind kind) {
    current_.kind = kind;
    current_.text = std::string(text_.substr(start, position_ - start));
  };
  if (c == '\n' || c == ';') {
    skip(1);
    return take(Token::Kind::end_of_line);
  }
  if (starts_name(c)) {
    while (continues_name(at(0))) skip(1);
    return take(Token::Kind::name);
  }
  const bool is_signed = (c == '-' || c == '+') && (is_digit(at(1)) || at(1) == '.' || at(1) == 'i');
  if (is_digit(c) || is_signed || (c == '.' && is_digit(at(1)))) {
    skip(1);
    while (is_digit(at(0)) || at(0) == '.' || std::isalpha(static_cast<unsigned char>(at(0))) != 0 ||
           ((at(0) == '-' || at(0) == '+') && (text_[position_ - 1] == 'e' || text_[position_ - 1] == 'E'))) {
      skip(1);
    }
    return take(Token::Kind::number);
  }
  if (c == '"') {
    skip(1);
    while (position_ < text_.size() && at(0) != '"' && at(0) != '\n') skip(1);
    if (at(0) != '"') fail("a quoted string is not closed");
    current_.kind = Token::Kind::text;
    current_.text = std::string(text_.substr(start + 1, position_ - start - 1));
    return skip(1);
  }
  if (c == ':' && at(1) == ':') {
    skip(2);
    return take(Token::Kind::mark);
  }
  static constexpr std::string_view marks = "()[]{}<>=,|@?*";
  skip(1);
  take(Token::Kind::mark);
  if (marks.find(c) == std::string_view::npos) fail("an unknown character");
  if (c == '(' || c == '[' || c == '{' || c == '<') ++depth_;
  if ((c == ')' || c == ']' || c == '}' || c == '>') && depth_ > 0) --depth_;
}

}  // namespace graft::onnx
