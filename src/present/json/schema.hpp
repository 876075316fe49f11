// Writes JSON schemas of reports, from the lists of their fields.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
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
[[nodiscard]] Json schema_of_fields();

// Declared here for values that contain values of these types.
template <class T>
[[nodiscard]] Json schema_of_value(const std::type_identity<std::optional<T>>& type);
template <class T>
[[nodiscard]] Json schema_of_value(const std::type_identity<std::vector<T>>& type);
template <class T>
[[nodiscard]] Json schema_of_value(const std::type_identity<std::map<std::string, T, std::less<>>>& type);

/// Returns the schema of a field's value, as json_of_value writes it.
template <class T>
[[nodiscard]] Json schema_of_value(const std::type_identity<T>& /*type*/) {
  if constexpr (report::Reflected<T>) {
    return schema_of_fields<T>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::is_same_v<T, toolkit::Model>) {
    return {};  // no JSON contains a graph
  } else if constexpr (std::is_floating_point_v<T>) {
    return {{"$ref", "#/definitions/number"}};
  } else if constexpr (std::is_integral_v<T>) {
    return {{"type", "integer"}};
  } else if constexpr (std::is_same_v<T, report::JsonText>) {
    return Json::object();
  } else {
    static_assert(std::is_enum_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view> ||
                  std::is_same_v<T, std::filesystem::path> || std::is_same_v<T, NodeRef> ||
                  std::is_same_v<T, TensorRef>);
    return {{"type", "string"}};
  }
}

template <class... Ts>
[[nodiscard]] Json schema_of_value(const std::type_identity<std::variant<Ts...>>& /*type*/) {
  return Json::object();
}

template <class T>
[[nodiscard]] Json schema_of_value(const std::type_identity<std::optional<T>>& /*type*/) {
  return {{"anyOf", {schema_of_value(std::type_identity<T>()), {{"type", "null"}}}}};
}

template <class T>
[[nodiscard]] Json schema_of_value(const std::type_identity<std::vector<T>>& /*type*/) {
  return {{"type", "array"}, {"items", schema_of_value(std::type_identity<T>())}};
}

template <class T>
[[nodiscard]] Json schema_of_value(const std::type_identity<std::set<T, std::less<>>>& /*type*/) {
  return {{"type", "array"}, {"items", schema_of_value(std::type_identity<T>())}};
}

template <class T>
[[nodiscard]] Json schema_of_value(const std::type_identity<std::map<std::string, T, std::less<>>>& /*type*/) {
  return {{"type", "object"}, {"additionalProperties", schema_of_value(std::type_identity<T>())}};
}

/// Defines `Type` as the type of a field's value if JSON has its key: the value type of a std::optional, otherwise T.
template <class T>
struct NonEmpty {
  using Type = T;
};
template <class T>
struct NonEmpty<std::optional<T>> {
  using Type = T;
};

/// Returns the schema of the object that json_of_fields writes. If two fields have the same key, the schemas of both
/// are alternatives ("anyOf"), because the JSON of a report contains only one of them.
template <report::Reflected Report>
[[nodiscard]] Json schema_of_fields() {
  Json properties = Json::object();
  Json required = Json::array();
  report::for_each_field<Report>([&](const auto& field, const auto& owner) {
    if (field.key == nullptr) return;
    using Owner = decltype(owner(std::declval<const Report&>()));
    using Value = std::decay_t<std::invoke_result_t<decltype(field.member), Owner>>;
    Json schema = {{"description", field.description}};
    if (field.is_left_out) {
      schema.update(schema_of_value(std::type_identity<typename NonEmpty<Value>::Type>()));
    } else {
      schema.update(schema_of_value(std::type_identity<Value>()));
      if (!field.has_condition) required.push_back(field.key);
    }
    Json& property = properties[field.key];
    if (!property.is_null()) {
      Json both = Json::array();
      both.push_back(std::move(property));
      both.push_back(std::move(schema));
      schema = Json::object();
      schema["anyOf"] = std::move(both);
    }
    property = std::move(schema);
  });
  return {{"type", "object"}, {"required", std::move(required)}, {"properties", std::move(properties)}};
}

/// Returns the schema of the JSON of a report. `Report::schema` supplies the name and the version.
template <report::Reflected Report>
[[nodiscard]] Json schema_of_report() {
  const report::Schema& about = Report::schema;
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", fmt::format("JSON of {}, version {}", about.name, about.version)},
                 {"description", about.description}};
  Json fields = schema_of_fields<Report>();
  if (about.is_in_json) {
    Json properties = {{"schema", {{"const", about.name}}}, {"version", {{"const", about.version}}}};
    properties.update(fields["properties"]);
    fields["properties"] = std::move(properties);
    fields["required"].insert(fields["required"].begin(), {"schema", "version"});
  }
  schema.update(fields);
  schema["definitions"] = {{"number",
                            {{"description", "A number, or a string for a number that JSON cannot represent."},
                             {"anyOf", {{{"type", "number"}}, {{"enum", {"inf", "-inf", "nan"}}}}}}}};
  return schema;
}

}  // namespace graft::present
