// Checks attributes, and converts them to text.
#include "graft/operator/attribute.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace graft {
namespace {

template <class Number>
std::string number_text(Number value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

template <class Number>
std::string list_text(const std::vector<Number>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + number_text(values[i]);
  return text + "]";
}

Status refuse(const AttributeInfo& info, const AttributeValue& found, const std::string& required) {
  const bool is_list = info.type == AttributeType::float_numbers || info.type == AttributeType::integers;
  return invalid_argument("attribute `" + std::string(info.name) + "` is " + to_string(found) +
                          (is_list ? "; each element must " : "; it must ") + required);
}

}  // namespace

std::string_view to_string(AttributeType type) {
  switch (type) {
    case AttributeType::float_number: return "float";
    case AttributeType::integer: return "int";
    case AttributeType::text: return "string";
    case AttributeType::float_numbers: return "floats";
    case AttributeType::integers: return "ints";
  }
  return "unknown";
}

std::string to_string(const AttributeValue& value) {
  switch (type_of(value)) {
    case AttributeType::float_number: return number_text(std::get<float>(value));
    case AttributeType::integer: return number_text(std::get<std::int64_t>(value));
    case AttributeType::text: return "\"" + std::get<std::string>(value) + "\"";
    case AttributeType::float_numbers: return list_text(std::get<std::vector<float>>(value));
    case AttributeType::integers: return list_text(std::get<std::vector<std::int64_t>>(value));
  }
  return {};
}

bool Range::contains(double value) const {
  if (std::isnan(value) || (finite && std::isinf(value))) return false;
  return (lowest_included ? value >= lowest : value > lowest) && value <= highest;
}

std::string Range::to_string() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " and ") + part; };
  if (std::isfinite(lowest)) add((lowest_included ? "at least " : "more than ") + number_text(lowest));
  if (std::isfinite(highest)) add("at most " + number_text(highest));
  if (finite) add("finite");
  return text;
}

Status check_attribute(const AttributeInfo& info, const AttributeValue& value) {
  if (type_of(value) != info.type) {
    return invalid_argument("attribute `" + std::string(info.name) + "` has type " +
                            std::string(to_string(type_of(value))) + "; it must have type " +
                            std::string(to_string(info.type)));
  }
  const auto check_number = [&](double number) -> Status {
    if (info.range.contains(number)) return {};
    const std::string allowed = info.range.to_string();
    return refuse(info, value, allowed.empty() ? "not be NaN" : "be " + allowed);
  };
  switch (info.type) {
    case AttributeType::float_number: return check_number(std::get<float>(value));
    case AttributeType::integer: return check_number(static_cast<double>(std::get<std::int64_t>(value)));
    case AttributeType::text: {
      const auto& text = std::get<std::string>(value);
      if (info.choices.empty() || std::find(info.choices.begin(), info.choices.end(), text) != info.choices.end()) {
        return {};
      }
      std::string allowed;
      for (const std::string_view choice : info.choices) {
        allowed += (allowed.empty() ? "" : ", ") + std::string(choice);
      }
      return refuse(info, value, "be one of " + allowed);
    }
    case AttributeType::float_numbers:
      for (const float number : std::get<std::vector<float>>(value)) {
        if (Status status = check_number(number); !status.ok()) return status;
      }
      return {};
    case AttributeType::integers:
      for (const std::int64_t number : std::get<std::vector<std::int64_t>>(value)) {
        if (Status status = check_number(static_cast<double>(number)); !status.ok()) return status;
      }
      return {};
  }
  return {};
}

}  // namespace graft
