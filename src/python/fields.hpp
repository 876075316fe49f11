// Binds the fields of a report as attributes, from the list of the fields.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "graft/report/field.hpp"

namespace graft::python {

/// Adds an attribute for each field of a report that has a name in Python. An enumeration becomes the name of the
/// value.
template <class Class>
void add_fields(Class& bound) {
  using Report = typename Class::Type;
  report::for_each_field<Report>([&](const auto& field, const auto& owner) {
    if (field.name == nullptr) return;
    using Owner = decltype(owner(std::declval<const Report&>()));
    using Value = std::invoke_result_t<decltype(field.member), Owner>;
    if constexpr (std::is_enum_v<std::decay_t<Value>>) {
      bound.def_prop_ro(
          field.name,
          [owner, member = field.member](const Report& report) {
            return std::string(to_string(std::invoke(member, owner(report))));
          },
          field.description);
    } else {
      bound.def_prop_ro(
          field.name,
          [owner, member = field.member](const Report& report) -> Value { return std::invoke(member, owner(report)); },
          nanobind::rv_policy::reference_internal, field.description);
    }
  });
}

}  // namespace graft::python
