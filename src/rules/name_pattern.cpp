// Matches names as rules write them: exact, with `*` and `?`, or regular expressions.
#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "rules/rule.hpp"

namespace graft::rules {
namespace {

/// Returns the regular expression for a name with `*` and `?`. Each wildcard becomes a group, so that `rename` can
/// refer to the matched characters as $1, $2 ...
std::string expression_of(const std::string& glob) {
  std::string result;
  for (const char c : glob) {
    if (c == '*') {
      result += "(.*)";
    } else if (c == '?') {
      result += "(.)";
    } else {
      result += RE2::QuoteMeta(re2::StringPiece(&c, 1));
    }
  }
  return result;
}

}  // namespace

NamePattern::NamePattern(std::string text, Place place) : text_(std::move(text)), place_(std::move(place)) {
  const bool is_regular = text_.starts_with("re:");
  if (!is_regular && text_.find_first_of("*?") == std::string::npos) return;
  RE2::Options options(RE2::Latin1);  // names are bytes
  options.set_log_errors(false);
  options.set_dot_nl(!is_regular);
  expression_ = std::make_shared<const RE2>(is_regular ? text_.substr(3) : expression_of(text_), options);
  if (!expression_->ok()) {
    fail_at(place_, fmt::format("`{}` is not a valid regular expression: {}", text_, expression_->error()));
  }
}

bool NamePattern::matches(const std::string& name) const {
  return expression_ ? RE2::FullMatch(name, *expression_) : name == text_;
}

std::string NamePattern::renamed(const std::string& name, const std::string& to) const {
  if (!expression_) return to;
  // Rules can use only $0 to $9, and RE2's time grows with the number of groups that it returns.
  constexpr int most = 10;
  std::vector<re2::StringPiece> groups(
      static_cast<std::size_t>(std::min(expression_->NumberOfCapturingGroups() + 1, most)));
  if (!expression_->Match(name, 0, name.size(), RE2::ANCHOR_BOTH, groups.data(), static_cast<int>(groups.size()))) {
    return name;
  }
  std::string result;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const char next = to[i] == '$' && i + 1 < to.size() ? to[i + 1] : '\0';
    if (next >= '0' && next <= '9') {
      const auto group = static_cast<std::size_t>(next - '0');
      if (group < groups.size()) result += groups[group].as_string();
      ++i;
    } else {
      result += to[i];
      if (next == '$') ++i;
    }
  }
  return result;
}

}  // namespace graft::rules
