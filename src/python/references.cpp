// The names of nodes and tensors in results, and HTML for notebooks.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "graft/node_ref.hpp"
#include "python/bindings.hpp"
#include "python/results.hpp"

namespace graft::python {

namespace nb = nanobind;

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string table_of(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string html = "<table>";
  for (const auto& [name, text] : rows) {
    html += R"(<tr><th style="text-align:left">)" + escaped(name) + R"(</th><td style="text-align:left">)" +
            escaped(text) + "</td></tr>";
  }
  return html + "</table>";
}

std::string frame_of(const std::string& page) {
  return R"(<iframe style="width:100%;height:620px;border:0" srcdoc=")" + escaped(page) + R"("></iframe>)";
}

void add_references(nb::module_& module) {
  nb::class_<NodeRef>(module, "NodeRef", "A node of a model.")
      .def_ro("id", &NodeRef::id, "The name of the node's first output, which is unique in the model.")
      .def_ro("name", &NodeRef::name, "The node's name in the model; the id where the node has no name.")
      .def_ro("op", &NodeRef::op, "The operator type, for example 'Conv'.")
      .def_ro("domain", &NodeRef::domain, "The operator's domain, for example 'graft'; empty for ONNX's own operators.")
      .def("__repr__", [](const NodeRef& node) { return "<node " + text_of(node) + ">"; });
  nb::class_<TensorRef>(module, "TensorRef", "A tensor of a model.")
      .def_ro("name", &TensorRef::name)
      .def_ro("type", &TensorRef::type,
              "Type and shape of the run, for example 'f32[2, 10]'; empty where the model has no such tensor.")
      .def("__repr__", [](const TensorRef& tensor) { return "<tensor '" + tensor.name + "' " + tensor.type + ">"; });
}

}  // namespace graft::python
