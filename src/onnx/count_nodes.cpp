// Visits the nodes of all graphs once.
#include "onnx/count_nodes.hpp"

namespace graft::onnx {

NodeCounts count_nodes(const Model& model) {
  NodeCounts counts;
  model.graph().for_each_node([&](const Node& node) {
    ++(node.is("Constant") ? counts.constants : counts.nodes);
    counts.in_bodies += node.graph == &model.graph() ? 0 : 1;
  });
  return counts;
}

}  // namespace graft::onnx
