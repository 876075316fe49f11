// The fields of a report, each declared once with its description. The JSON writer and the Python module read this
// list.
#pragma once

#include <tuple>

namespace graft::report {

/// A field of a report. `Member` is a pointer to a data member, or to a const member function without parameters.
template <class Member>
struct Field {
  const char* name;  ///< The name of the attribute in Python; null for a field that only JSON has.
  const char* key;   ///< The key in JSON; null for a field that only Python has.
  Member member;
  const char* description;  ///< A sentence.
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

/// A struct that lists its fields: `static constexpr auto fields()` returns a std::tuple of them.
template <class T>
concept Reflected = requires {
  T::fields();
};

/// Calls `visit` with each field of a report, in the order of the list.
template <Reflected Report, class Visit>
constexpr void for_each_field(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, Report::fields());
}

}  // namespace graft::report
