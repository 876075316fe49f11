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
  const char* description;  ///< A sentence.
  /// Whether JSON has no key where the value is empty: a std::optional without a value, or an empty list.
  bool is_left_out = false;
  Condition condition = {};  ///< JSON has no key where the condition is false.

  static constexpr bool has_condition = !std::is_null_pointer_v<Condition>;
  /// Returns whether the condition holds for the struct that has the field.
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

/// Returns a field whose key JSON leaves out where the value is empty.
template <class Member>
[[nodiscard]] constexpr Field<Member> field_if_any(const char* name, Member member, const char* description) {
  return {name, name, member, description, true};
}

/// Returns a field whose key JSON leaves out where the value is empty, with another name in Python. It may be null.
template <class Member>
[[nodiscard]] constexpr Field<Member> field_if_any(const char* name, const char* key, Member member,
                                                   const char* description) {
  return {name, key, member, description, true};
}

/// A JSON value of another program, as text, which reports contain as it is.
struct JsonText {
  std::string text;
};

/// Returns a field whose key JSON leaves out where the condition, a pointer to a member of the report, is false.
template <class Member, class Condition>
[[nodiscard]] constexpr Field<Member, Condition> field_if(Condition condition, const char* name, const char* key,
                                                          Member member, const char* description) {
  return {name, key, member, description, false, condition};
}

/// Returns a key of the JSON whose value `present` composes in words. `Value` is its type.
template <class Value>
[[nodiscard]] constexpr auto composed(const char* key, const char* description) {
  return field(
      nullptr, key, [](const auto& /*report*/) { return Value(); }, description);
}

/// A member whose own fields are fields of the report. `Member` is a pointer to a data member of a reflected type, or
/// to a const member function that returns a reference to one.
template <class Member>
struct Inlined {
  Member member;
  bool is_only_json = false;  ///< Whether Python has no attributes for the fields.
};

/// Returns the fields of a member as fields of the report.
template <class Member>
[[nodiscard]] constexpr Inlined<Member> inlined(Member member) {
  return {member};
}

/// Returns the fields of a member as fields of the report that only JSON has.
template <class Member>
[[nodiscard]] constexpr Inlined<Member> inlined_in_json(Member member) {
  return {member, true};
}

/// The JSON of a report, for its schema in docs/schema.
struct Schema {
  const char* name;  ///< The command that prints it, or the file that contains it.
  int version;       ///< Increases with each change that readers have to know.
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
