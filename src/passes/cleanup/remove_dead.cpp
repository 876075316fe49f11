// Pass remove_dead: removes nodes and constants that no output needs.
//
//   a = Neg(x); y = Relu(x)   becomes   y = Relu(x), where only y is an output

#include <algorithm>

#include "onnx/functions.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {

void remove_dead(Rewriter& rewriter) {
  std::vector<onnx::Graph*> graphs = rewriter.graphs();
  // Inner graphs first: a dead If takes its branches with it.
  std::reverse(graphs.begin(), graphs.end());
  for (onnx::Graph* graph : graphs) {
    std::vector<NodeRef> before;
    for (const onnx::Node* node : graph->nodes()) before.push_back(ref_of(*node));
    if (graph->remove_dead() == 0) continue;
    for (const onnx::Node* node : graph->nodes()) std::erase(before, ref_of(*node));
    rewriter.record({.nodes = std::move(before)}, "nothing", "no output needs them",
                    "by definition: nothing reads their outputs");
  }
  remove_unused_functions(rewriter.model());
}

}  // namespace graft::passes
