// Reads single values from the YAML of a file of rules.
#include "rules/read/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <variant>

#include "rules/text.hpp"

namespace graft::rules {
namespace {

RuleValue::Data scalar_of(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // a quoted scalar is a string
  if (text == "true") return std::int64_t{1};
  if (text == "false") return std::int64_t{0};
  if (const auto integer = to_integer(text)) return *integer;
  if (const auto number = to_number(text)) return *number;
  return text;
}

}  // namespace

Place YamlReader::place_of(const YAML::Node& node) const {
  const YAML::Mark mark = node.Mark();
  return {name_, mark.is_null() ? 1 : mark.line + 1, mark.is_null() ? 1 : mark.column + 1};
}

void YamlReader::fail(const YAML::Node& node, const std::string& message) const { fail_at(place_of(node), message); }

std::optional<YAML::Node> find_key(const YAML::Node& map, std::string_view key) {
  for (const auto& entry : map) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.second;
  }
  return std::nullopt;
}

void YamlReader::check_keys(const YAML::Node& map, const std::vector<std::string>& allowed,
                            std::string_view what) const {
  if (!map.IsMap())
    fail(map, fmt::format("{} must be a YAML mapping of keys to values; its keys are {}", what, joined(allowed)));
  std::vector<std::string> seen;
  for (const auto& entry : map) {
    const std::string key = text_of(entry.first, "a key");
    if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
      fail(entry.first, fmt::format("{} has no key `{}`{} Its keys are {}", what, key, did_you_mean(key, allowed, "."),
                                    joined(allowed)));
    }
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      fail(entry.first, fmt::format("the key `{}` occurs twice; remove one of the two", key));
    }
    seen.push_back(key);
  }
}

std::string YamlReader::text_of(const YAML::Node& node, std::string_view what) const {
  if (!node.IsScalar() || node.Scalar().empty())
    fail(node, fmt::format("{} must be a string or a number, and not empty", what));
  return node.Scalar();
}

bool YamlReader::flag_of(const YAML::Node& node, std::string_view what) const {
  const std::string text = node.IsScalar() ? node.Scalar() : "";
  if (text != "true" && text != "false") fail(node, fmt::format("`{}` must be true or false", what));
  return text == "true";
}

NamePattern YamlReader::pattern_of(const YAML::Node& node, std::string_view what) const {
  return {text_of(node, fmt::format("`{}`", what)), place_of(node)};
}

std::vector<NamePattern> YamlReader::patterns_of(const YAML::Node& node, std::string_view what) const {
  if (node.IsScalar()) return {pattern_of(node, what)};
  if (!node.IsSequence() || node.size() == 0) fail(node, fmt::format("`{}` must be a name or a list of names", what));
  std::vector<NamePattern> result;
  for (const YAML::Node& item : node) result.push_back(pattern_of(item, what));
  return result;
}

RuleValue YamlReader::value_of(const YAML::Node& node) const {
  RuleValue value{place_of(node), {}};
  if (node.IsScalar()) {
    value.data = scalar_of(node);
    return value;
  }
  if (!node.IsSequence())
    fail(node,
         "this value must be a number, true or false, a string, a list of numbers or a list of strings, not empty and "
         "not a mapping");
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string> strings;
  for (const YAML::Node& item : node) {
    if (!item.IsScalar()) fail(item, "each element of the list must be a number or a string");
    const RuleValue::Data data = scalar_of(item);
    if (const auto* integer = std::get_if<std::int64_t>(&data)) {
      integers.push_back(*integer);
      numbers.push_back(static_cast<double>(*integer));
    } else if (const auto* number = std::get_if<double>(&data)) {
      numbers.push_back(*number);
    } else {
      strings.push_back(std::get<std::string>(data));
    }
  }
  if (!strings.empty() && strings.size() != node.size())
    fail(node, "the list must contain only numbers or only strings, not both");
  if (!strings.empty()) {
    value.data = std::move(strings);
  } else if (integers.size() == node.size()) {
    value.data = std::move(integers);
  } else {
    value.data = std::move(numbers);
  }
  return value;
}

std::size_t YamlReader::index_of(const YAML::Node& node) const {
  const auto index = node.IsScalar() ? to_integer(node.Scalar()) : std::nullopt;
  if (!index || *index < 0) fail(node, "the index of an input and a rank must be integers that are at least 0");
  return static_cast<std::size_t>(*index);
}

}  // namespace graft::rules
