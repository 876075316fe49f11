// The members that all results have in Python: a short text, JSON, and a page in notebooks.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/toolkit/present.hpp"

namespace graft::python {

/// Returns the count with its noun: "1 node", "3 nodes".
[[nodiscard]] inline std::string count_of(std::size_t count, std::string_view singular) {
  return std::to_string(count) + " " + std::string(singular) + (count == 1 ? "" : "s");
}

/// Returns "'conv1' (Conv)".
[[nodiscard]] inline std::string text_of(const NodeRef& node) { return "'" + node.name + "' (" + node.op + ")"; }

/// Escapes text for HTML, also inside an attribute's value.
[[nodiscard]] std::string escaped(std::string_view text);

/// Returns an HTML table of names and values, for a result for which no command writes a page.
[[nodiscard]] std::string table_of(const std::vector<std::pair<std::string, std::string>>& rows);

/// Returns an iframe with a whole HTML page, whose styles and scripts do not affect the notebook.
[[nodiscard]] std::string frame_of(const std::string& page);

/// Adds `__repr__` and `to_json` to the class of a result.
template <class Class>
void add_texts(Class& bound, std::string (*describe)(const typename Class::Type&),
               const char* json_doc = "Returns the JSON of the command of that name (docs/schema), as text.") {
  using Result = typename Class::Type;
  bound.def("__repr__", describe);
  bound.def(
      "to_json", [](const Result& result) { return toolkit::to_json(result); }, json_doc);
}

/// Adds `to_page`, the page that the command writes with --report, and `_repr_html_`, which shows it in notebooks.
template <class Class>
void add_page(Class& bound) {
  using Result = typename Class::Type;
  bound.def(
      "to_page", [](const Result& result) { return toolkit::to_page(result); },
      "Returns the report of the command of that name as an HTML page, which needs no other file and no network.");
  bound.def("_repr_html_", [](const Result& result) { return frame_of(toolkit::to_page(result)); });
}

}  // namespace graft::python
