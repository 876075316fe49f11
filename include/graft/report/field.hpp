// The fields of a report, each declared once with its description. The JSON writer and the Python module read this
// list.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>

namespace graft::report {

/// A field of a report. `Member` is a pointer to a data member, or to a const member function without parameters.
/// `Condition` is such a pointer to a bool, or std::nullptr_t.
template <class Member, class Condition = std::nullptr_t>
struct Field {
  const char* name;  ///< The name of the attribute in Python; null for a field that only JSON has.
  const char* key;   ///< The key in JSON; null for a field that only Python has.
  Member member;
  const char* description;  ///< A sentence that describes the field in the schema and in the Python documentation.
  /// Whether JSON leaves out the key if the value is empty: a std::optional without a value, or an empty list.
  bool is_left_out = false;
  Condition condition = {};  ///< JSON leaves out the key if the condition is false.

  static constexpr bool has_condition = !std::is_null_pointer_v<Condition>;
  /// Returns whether the condition is true for `owner`, the struct that has the field.
  template <class Owner>
  [[nodiscard]] bool applies_to(const Owner& owner) const {
    if constexpr (has_condition) {
      return std::invoke(condition, owner);
    } else {
      return true;
    }
  }
};

/// Returns a field with the same name in Python and in JSON.
template <class Member>
[[nodiscard]] constexpr Field<Member> field(const char* name, Member member, const char* description) {
  return {name, name, member, description};
}

/// Returns a field whose name in Python differs from its key in JSON. Either may be null.
template <class Member>
[[nodiscard]] constexpr Field<Member> field(const char* name, const char* key, Member member, const char* description) {
  return {name, key, member, description};
}

/// Returns a field whose key JSON leaves out if the value is empty.
template <class Member>
[[nodiscard]] constexpr Field<Member> field_if_any(const char* name, Member member, const char* description) {
  return {name, name, member, description, true};
}

/// Returns a field with another name in Python, whose key JSON leaves out if the value is empty. The Python name may be
/// null.
template <class Member>
[[nodiscard]] constexpr Field<Member> field_if_any(const char* name, const char* key, Member member,
                                                   const char* description) {
  return {name, key, member, description, true};
}

/// The text of a JSON value from another program, which a report includes unchanged.
struct JsonText {
  std::string text;
};

/// Returns a field whose key JSON leaves out if the condition, a pointer to a member of the report, is false.
template <class Member, class Condition>
[[nodiscard]] constexpr Field<Member, Condition> field_if(Condition condition, const char* name, const char* key,
                                                          Member member, const char* description) {
  return {name, key, member, description, false, condition};
}

/// Returns a field that only JSON has. The library `present` computes the value, of the type `Value`, from the report.
template <class Value>
[[nodiscard]] constexpr auto composed(const char* key, const char* description) {
  return field(
      nullptr, key, [](const auto& /*report*/) { return Value(); }, description);
}

/// A member whose fields appear as fields of the report itself. `Member` is a pointer to a data member of a reflected
/// type, or to a const member function that returns a reference to one.
template <class Member>
struct Inlined {
  Member member;
  bool is_only_json = false;  ///< Whether only JSON has the fields, and Python has no attributes for them.
};

/// Returns an Inlined that adds the fields of a member to the report, in Python and in JSON.
template <class Member>
[[nodiscard]] constexpr Inlined<Member> inlined(Member member) {
  return {member};
}

/// Returns an Inlined that adds the fields of a member to the report in JSON only.
template <class Member>
[[nodiscard]] constexpr Inlined<Member> inlined_in_json(Member member) {
  return {member, true};
}

/// The name and the version of a report's JSON. docs/schema has one schema for each report.
struct Schema {
  const char* name;  ///< The command that prints the report, or the file that contains it.
  int version;       ///< The version of the schema, which increases with each change that affects readers.
  const char* description;
  bool is_in_json = false;  ///< Whether the JSON begins with the keys `schema`, the name, and `version`.
};

/// A struct that lists its fields: `static constexpr auto fields()` returns a std::tuple of them.
template <class T>
concept Reflected = requires {
  T::fields();
};

/// Calls `visit(field, owner)` with each field of a report, in the order of the list. `owner(report)` returns the
/// struct that has the field: the report, or one of its inlined members.
template <Reflected Report, class Visit, class Owner = std::identity>
constexpr void for_each_field(const Visit& visit, const Owner& owner = {}) {
  const auto visit_one = [&]<class Entry>(const Entry& entry) {
    if constexpr (requires { entry.name; }) {
      visit(entry, owner);
    } else {
      using Part = std::decay_t<std::invoke_result_t<decltype(entry.member), const Report&>>;
      const auto visit_part = [&](auto field, const auto& owner_of_part) {
        if (entry.is_only_json) field.name = nullptr;
        visit(field, owner_of_part);
      };
      for_each_field<Part>(visit_part, [owner, member = entry.member](const auto& report) -> const Part& {
        return std::invoke(member, owner(report));
      });
    }
  };
  std::apply([&](const auto&... entry) { (visit_one(entry), ...); }, Report::fields());
}

}  // namespace graft::report
