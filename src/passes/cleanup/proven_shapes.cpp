// Infers the shapes of a copy of the model, from its inputs alone.
#include "passes/cleanup/proven_shapes.hpp"

#include <vector>

#include "onnx/shape_inference.hpp"

namespace graft::passes {

ProvenShapes::ProvenShapes(Rewriter& rewriter) : copy_(rewriter.model().clone()) {
  const std::vector<onnx::Graph*> originals = rewriter.graphs();
  const std::vector<onnx::Graph*> copies = graphs_of(copy_);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    copies_.emplace(originals[i], copies[i]);
  }
  // The caller guarantees the input shapes of the main graph. A Loop creates the first two inputs of its body as they
  // are declared.
  copy_.graph().for_each_node([](onnx::Node& node) {
    for (onnx::Graph* body : node.subgraphs()) {
      for (std::size_t i = node.is("Loop") ? 2 : 0; i < body->inputs().size(); ++i) body->inputs()[i]->shape.reset();
    }
  });
  infer_shapes(copy_, {});
}

const Shape* ProvenShapes::of(const onnx::Value& value) const {
  const auto graph = copies_.find(value.graph);
  const onnx::Value* found = graph == copies_.end() ? nullptr : graph->second->find_local(value.name);
  return found == nullptr || !found->shape ? nullptr : &*found->shape;
}

}  // namespace graft::passes
