// Reads structs of reports from the engine driver's JSON, using the structs' lists of fields.
#pragma once

#include <nlohmann/json.hpp>
#include <type_traits>

#include "graft/report/field.hpp"

namespace graft::engine {

/// Sets a value from JSON. Members of a struct whose key is missing remain unchanged, and unknown keys are ignored. A
/// null leaves a std::optional as it is; of two nested optionals, it sets the outer one to an empty inner one.
template <class T>
void read_value(const nlohmann::json& json, T& value) {
  if constexpr (report::Reflected<T>) {
    report::for_each_field<T>([&](const auto& field, const auto& /*owner*/) {
      if constexpr (std::is_member_object_pointer_v<decltype(field.member)>) {
        if (field.key != nullptr && json.contains(field.key)) read_value(json[field.key], value.*field.member);
      }
    });
  } else if constexpr (requires { value->has_value(); }) {
    read_value(json, value.emplace());
  } else if constexpr (requires { value.has_value(); }) {
    if (!json.is_null()) read_value(json, value.emplace());
  } else if constexpr (std::is_same_v<T, report::JsonText>) {
    value.text = json.dump();
  } else if constexpr (requires { typename T::mapped_type; }) {
    for (const auto& [key, item] : json.items()) read_value(item, value[key]);
  } else if constexpr (requires { value.emplace_back(); }) {
    for (const nlohmann::json& item : json) read_value(item, value.emplace_back());
  } else {
    json.get_to(value);
  }
}

/// Returns a report struct with the members that the JSON object contains, see read_value.
template <report::Reflected T>
[[nodiscard]] T read_fields(const nlohmann::json& json) {
  T value;
  read_value(json, value);
  return value;
}

}  // namespace graft::engine
