// Names nodes in reports.
#include "onnx/node_ref.hpp"

#include <algorithm>
#include <string>
#include <tuple>

namespace graft::onnx {

NodeRef ref_of(const Node& node) {
  const auto output =
      std::find_if(node.outputs.begin(), node.outputs.end(), [](const Value* o) { return o != nullptr; });
  std::string id = output == node.outputs.end() ? std::string() : (*output)->name;
  std::string name = node.name.empty() ? id : node.name;
  return {.id = std::move(id), .name = std::move(name), .op = node.op_type, .domain = node.domain};
}

bool ByName::operator()(const NodeRef& a, const NodeRef& b) const {
  return std::tie(a.name, a.op, a.domain) < std::tie(b.name, b.op, b.domain);
}

}  // namespace graft::onnx
