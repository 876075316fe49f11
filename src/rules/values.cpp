// Converts values of rules: numbers in strings, places, dimensions and attributes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "rules/rule.hpp"
#include "rules/text.hpp"

namespace graft::rules {

std::optional<std::int64_t> to_integer(const std::string& text) {
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (errno != 0 || *end != '\0' || std::isspace(static_cast<unsigned char>(text.front())) != 0) return std::nullopt;
  return value;
}

std::optional<double> to_number(const std::string& text) {
  if (text == ".inf" || text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-.inf" || text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text.empty() || text.find_first_not_of("0123456789+-.eE") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0') return std::nullopt;
  return value;
}

std::string joined(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known, std::string_view otherwise) {
  const auto meant = nearest(word, known);
  return meant ? fmt::format("; did you mean {}?", *meant) : std::string(otherwise);
}

std::string Place::to_string() const { return fmt::format("{}:{}:{}", file, line, column); }

bool RuleValue::is_expression() const {
  const auto* text = std::get_if<std::string>(&data);
  return text != nullptr && text->find('@') != std::string::npos;
}

std::string RuleValue::to_string() const {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
          return fmt::format("\"{}\"", value);
        } else if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>) {
          return fmt::format("{}", static_cast<float>(value));  // attributes are f32; 1e-05 is what was written
        } else if constexpr (fmt::is_formattable<std::decay_t<decltype(value)>>::value) {
          return fmt::format("{}", value);
        } else {
          return fmt::format("[{}]", fmt::join(value, ", "));
        }
      },
      data);
}

std::optional<AttributeValue> to_attribute(const RuleValue& value, AttributeType type) {
  const auto* integer = std::get_if<std::int64_t>(&value.data);
  const auto* number = std::get_if<double>(&value.data);
  const auto* integers = std::get_if<std::vector<std::int64_t>>(&value.data);
  const auto* numbers = std::get_if<std::vector<double>>(&value.data);
  switch (type) {
    case AttributeType::float_number:
      if (integer != nullptr) return static_cast<float>(*integer);
      if (number != nullptr) return static_cast<float>(*number);
      if (numbers != nullptr && numbers->size() == 1) return static_cast<float>(numbers->front());
      return std::nullopt;
    case AttributeType::integer:
      if (integer != nullptr) return *integer;
      if (integers != nullptr && integers->size() == 1) return integers->front();
      return std::nullopt;
    case AttributeType::text: {
      const auto* text = std::get_if<std::string>(&value.data);
      return text == nullptr ? std::nullopt : std::optional<AttributeValue>(*text);
    }
    case AttributeType::float_numbers:
      if (integer != nullptr) return std::vector{static_cast<float>(*integer)};
      if (number != nullptr) return std::vector{static_cast<float>(*number)};
      if (integers != nullptr) return std::vector<float>(integers->begin(), integers->end());
      if (numbers != nullptr) return std::vector<float>(numbers->begin(), numbers->end());
      return std::nullopt;
    case AttributeType::integers:
      if (integer != nullptr) return std::vector{*integer};
      return integers == nullptr ? std::nullopt : std::optional<AttributeValue>(*integers);
  }
  return std::nullopt;
}

AttributeValue to_attribute(const RuleValue& value) {
  for (const AttributeType type : {AttributeType::integer, AttributeType::integers, AttributeType::text}) {
    const bool is_list = type == AttributeType::integers && std::holds_alternative<std::int64_t>(value.data);
    if (const auto result = to_attribute(value, type); result && !is_list) return *result;
  }
  if (const auto number = to_attribute(value, AttributeType::float_number);
      number && std::holds_alternative<double>(value.data)) {
    return *number;
  }
  if (const auto numbers = to_attribute(value, AttributeType::float_numbers)) return *numbers;
  throw Error(fmt::format("{}: this is a list of strings; no operator has such an attribute", value.place.to_string()));
}

std::string RuleOperator::to_string() const {
  if (is_plugin) {
    return fmt::format("the plugin {} version {}{}", op_type, plugin_version,
                       plugin_namespace.empty() ? "" : " of " + plugin_namespace);
  }
  return domain.empty() ? op_type : domain + "::" + op_type;
}

Dim parse_dim(const std::string& text, const Place& place) {
  if (const auto size = to_integer(text)) {
    if (*size < 1) throw Error(fmt::format("{}: the size is {}; allowed are 1 and above", place.to_string(), *size));
    return *size;
  }
  const bool is_name = std::all_of(text.begin(), text.end(),
                                   [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
  if (!is_name || text.empty()) {
    throw Error(fmt::format("{}: '{}' is neither a size nor the name of a dimension", place.to_string(), text));
  }
  return Dim::symbol(text);
}

std::map<std::string, Shape, std::less<>> shapes_of(const std::vector<Rule>& rules) {
  std::map<std::string, Shape, std::less<>> result;
  for (const Rule& rule : rules) {
    if (rule.kind != Rule::Kind::shape) continue;
    for (const Rule::Entry& entry : rule.entries) {
      if (!entry.name.is_exact()) continue;
      Shape shape;
      for (const std::string& dim : std::get<std::vector<std::string>>(entry.value.data)) {
        shape.push_back(parse_dim(dim, entry.value.place));
      }
      result[entry.name.text()] = std::move(shape);
    }
  }
  return result;
}

}  // namespace graft::rules
