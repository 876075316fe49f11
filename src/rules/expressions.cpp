// Evaluates expressions in rules: arithmetic over the constants and attributes that were matched.
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <functional>
#include <string_view>

#include "rules/rule.hpp"
#include "rules/text.hpp"

namespace graft::rules {
namespace {

struct ExpressionNumbers {
  std::vector<double> values;
  bool is_list = false;
  bool is_integer = false;
};

class Expression {
 public:
  Expression(std::string_view text, const Place& place,
             const std::function<std::optional<RuleValue::Data>(const std::string&)>& value_of)
      : text_(text), place_(place), value_of_(value_of) {}

  RuleValue::Data run() {
    skip_spaces();
    // A name alone may have a value of any type, also a string.
    const std::size_t start = position_;
    if (accept('@')) {
      const std::string name = read_name();
      if (position_ == text_.size()) return find(name);
      position_ = start;
    }
    const ExpressionNumbers result = sum();
    if (position_ != text_.size()) fail("expected +, -, * or / here");
    if (result.is_integer) {
      std::vector<std::int64_t> integers;
      for (const double value : result.values) integers.push_back(static_cast<std::int64_t>(value));
      if (!result.is_list) return integers.at(0);
      return integers;
    }
    if (!result.is_list) return result.values.at(0);
    return result.values;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    fail_at(place_, fmt::format("the expression `{}`, column {}: {}", text_, position_ + 1, message));
  }
  void skip_spaces() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  bool accept(char c) {
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    if (c != '@') skip_spaces();
    return true;
  }
  std::string read_name() {
    const std::size_t start = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) != 0 || text_[position_] == '_')) {
      ++position_;
    }
    if (position_ == start) fail("a name must follow @");
    std::string name(text_.substr(start, position_ - start));
    skip_spaces();
    return name;
  }
  RuleValue::Data find(const std::string& name) const {
    auto data = value_of_(name);
    if (!data)
      fail_at(place_, fmt::format("@{} has no value here; in a rule `match` it must be the name of a constant in the "
                                  "pattern, in other rules the name of an attribute of the selected node",
                                  name));
    return *std::move(data);
  }

  ExpressionNumbers combine(const ExpressionNumbers& a, const ExpressionNumbers& b, char how) const {
    if (a.is_list && b.is_list && a.values.size() != b.values.size()) {
      fail(fmt::format("the two lists have {} and {} elements; they must have the same number", a.values.size(),
                       b.values.size()));
    }
    ExpressionNumbers result{{}, a.is_list || b.is_list, a.is_integer && b.is_integer && how != '/'};
    const std::size_t count = a.is_list ? a.values.size() : b.values.size();
    for (std::size_t i = 0; i < count; ++i) {
      const double x = a.is_list ? a.values[i] : a.values[0];
      const double y = b.is_list ? b.values[i] : b.values[0];
      result.values.push_back(how == '+' ? x + y : how == '-' ? x - y : how == '*' ? x * y : x / y);
    }
    return result;
  }

  ExpressionNumbers sum() {
    if (++depth_ > 50) fail("the parentheses are nested more than 49 levels deep");
    ExpressionNumbers result = product();
    while (true) {
      if (accept('+')) {
        result = combine(result, product(), '+');
      } else if (accept('-')) {
        result = combine(result, product(), '-');
      } else {
        --depth_;
        return result;
      }
    }
  }

  ExpressionNumbers product() {
    ExpressionNumbers result = factor();
    while (true) {
      if (accept('*')) {
        result = combine(result, factor(), '*');
      } else if (accept('/')) {
        result = combine(result, factor(), '/');
      } else {
        return result;
      }
    }
  }

  ExpressionNumbers factor() {
    bool negated = false;
    while (accept('-')) negated = !negated;
    ExpressionNumbers result;
    if (accept('(')) {
      result = sum();
      if (!accept(')')) fail("`)` is missing");
    } else if (accept('@')) {
      result = numbers_of(find(read_name()));
    } else if (position_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[position_])) != 0) {
      const std::string name = read_name();
      if (name != "sqrt" || !accept('('))
        fail("the only function is sqrt(...); write a constant or an attribute as @name");
      result = sum();
      if (!accept(')')) fail("`)` is missing");
      result.is_integer = false;
      for (double& value : result.values) value = std::sqrt(value);
    } else {
      result = number();
    }
    if (negated) {
      for (double& value : result.values) value = -value;
    }
    return result;
  }

  ExpressionNumbers numbers_of(const RuleValue::Data& data) const {
    auto values = to_numbers(data);
    if (!values) fail("expected a number, but the value of this name is a string");
    const bool is_integer =
        std::holds_alternative<std::int64_t>(data) || std::holds_alternative<std::vector<std::int64_t>>(data);
    return {*std::move(values), is_list(data), is_integer};
  }

  ExpressionNumbers number() {
    const std::size_t start = position_;
    const auto at = [&](std::size_t i) { return i < text_.size() ? text_[i] : '\0'; };
    while (std::isdigit(static_cast<unsigned char>(at(position_))) != 0 || at(position_) == '.' ||
           (position_ > start && (at(position_) == 'e' || at(position_) == 'E')) ||
           (position_ > start && (at(position_) == '-' || at(position_) == '+') &&
            (at(position_ - 1) == 'e' || at(position_ - 1) == 'E'))) {
      ++position_;
    }
    const std::string text(text_.substr(start, position_ - start));
    const auto value = to_number(text);
    if (!value) fail("expected a number, @name, sqrt( or `(` here");
    skip_spaces();
    return {{*value}, false, to_integer(text).has_value()};
  }

  std::string_view text_;
  const Place& place_;
  const std::function<std::optional<RuleValue::Data>(const std::string&)>& value_of_;
  std::size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace

RuleValue evaluate(const RuleValue& expression,
                   const std::function<std::optional<RuleValue::Data>(const std::string&)>& value_of) {
  if (!expression.is_expression()) return expression;
  return {expression.place, Expression(std::get<std::string>(expression.data), expression.place, value_of).run()};
}

}  // namespace graft::rules
