// Binds the fields of a report as attributes, from the list of the fields.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <string>
#include <type_traits>

#include "graft/report/field.hpp"

namespace graft::python {

/// Adds an attribute for each field of a report that has a name in Python. An enumeration becomes the name of the
/// value.
template <class Class>
void add_fields(Class& bound) {
  using Report = typename Class::Type;
  report::for_each_field<Report>([&](const auto& field) {
    if (field.name == nullptr) return;
    using Member = std::decay_t<decltype(field.member)>;
    using Value = std::decay_t<std::invoke_result_t<Member, const Report&>>;
    if constexpr (std::is_enum_v<Value>) {
      bound.def_prop_ro(
          field.name,
          [member = field.member](const Report& report) { return std::string(to_string(std::invoke(member, report))); },
          field.description);
    } else if constexpr (std::is_member_object_pointer_v<Member>) {
      bound.def_ro(field.name, field.member, field.description);
    } else {
      bound.def_prop_ro(field.name, field.member, field.description);
    }
  });
}

}  // namespace graft::python
