// What all results have in common: a short text, JSON, and a page in notebooks.
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

/// "1 node", "3 nodes".
[[nodiscard]] inline std::string count_of(std::size_t count, std::string_view singular) {
  return std::to_string(count) + " " + std::string(singular) + (count == 1 ? "" : "s");
}

/// "node 'conv1' (Conv)".
[[nodiscard]] inline std::string text_of(const NodeRef& node) { return "'" + node.name + "' (" + node.op + ")"; }

/// Text within HTML, and within an attribute of it.
[[nodiscard]] std::string escaped(std::string_view text);

/// Names and texts beside them, for a result that no command writes a page of.
[[nodiscard]] std::string table_of(const std::vector<std::pair<std::string, std::string>>& rows);

/// A whole page within a notebook's: its styles and scripts stay its own.
[[nodiscard]] std::string frame_of(const std::string& page);

/// `__repr__` and `to_json`.
template <class Class, class Describe>
void add_texts(Class& bound, Describe describe,
               const char* json_doc = "The JSON of the command of that name (docs/schema), as text.") {
  using Result = typename Class::Type;
  bound.def("__repr__", describe);
  bound.def(
      "to_json", [](const Result& result) { return toolkit::to_json(result); }, json_doc);
}

/// `_repr_html_`: what the command writes with --report.
template <class Class>
void add_page(Class& bound) {
  using Result = typename Class::Type;
  bound.def(
      "to_page", [](const Result& result) { return toolkit::to_page(result); },
      "The report that the command writes, as HTML: it needs no other file and no network.");
  bound.def("_repr_html_", [](const Result& result) { return frame_of(toolkit::to_page(result)); });
}

}  // namespace graft::python
