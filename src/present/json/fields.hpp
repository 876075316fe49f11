// Writes reports as JSON, from the lists of their fields.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/field.hpp"
#include "graft/toolkit/model.hpp"
#include "present/json/values.hpp"

namespace graft::present {

template <report::Reflected Report>
[[nodiscard]] Json json_of_fields(const Report& report);
template <class T>
[[nodiscard]] Json json_of_value(const std::vector<T>& values);
template <class T>
[[nodiscard]] Json json_of_value(const std::map<std::string, T, std::less<>>& values);

/// Returns a field's value as JSON. A NodeRef and a TensorRef become their names, an enumerator its name, NaN and
/// infinities a string, and a Model null.
template <class T>
[[nodiscard]] Json json_of_value(const T& value) {
  if constexpr (report::Reflected<T>) {
    return json_of_fields(value);
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(to_string(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return number(value);
  } else if constexpr (std::is_same_v<T, NodeRef> || std::is_same_v<T, TensorRef>) {
    return value.name;
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return value.string();
  } else if constexpr (std::is_same_v<T, report::JsonText>) {
    return Json::parse(value.text);
  } else if constexpr (std::is_same_v<T, toolkit::Model>) {
    return {};  // no JSON contains a graph
  } else {
    return value;
  }
}

template <class... Ts>
[[nodiscard]] Json json_of_value(const std::variant<Ts...>& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

template <class T>
[[nodiscard]] Json json_of_value(const std::optional<T>& value) {
  return value ? json_of_value(*value) : Json();
}

template <class T>
[[nodiscard]] Json json_of_value(const std::vector<T>& values) {
  Json json = Json::array();
  for (const T& value : values) json.push_back(json_of_value(value));
  return json;
}

template <class T>
[[nodiscard]] Json json_of_value(const std::map<std::string, T, std::less<>>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = json_of_value(value);
  return json;
}

/// Returns whether a std::optional has no value, or a list no element.
template <class T>
[[nodiscard]] bool is_empty(const T& value) {
  if constexpr (requires { value.has_value(); }) {
    return !value.has_value();
  } else if constexpr (requires { value.empty(); }) {
    return value.empty();
  } else {
    return false;
  }
}

/// Returns an object with the fields of a report that have a key, in the order of their list.
template <report::Reflected Report>
[[nodiscard]] Json json_of_fields(const Report& report) {
  Json json = Json::object();
  report::for_each_field<Report>([&](const auto& field, const auto& owner) {
    if (field.key == nullptr || !field.applies_to(owner(report))) return;
    const auto& value = std::invoke(field.member, owner(report));
    if (!field.is_left_out || !is_empty(value)) json[field.key] = json_of_value(value);
  });
  return json;
}

/// Returns the JSON that a command prints: the name and the version of the report's schema where they are in the JSON,
/// and the fields of the report.
template <report::Reflected Report>
[[nodiscard]] Json json_of_report(const Report& report) {
  Json json = Json::object();
  if (Report::schema.is_in_json) json = {{"schema", Report::schema.name}, {"version", Report::schema.version}};
  json.update(json_of_fields(report));
  return json;
}

}  // namespace graft::present
