// Writes the axes of a Transpose that are counted from the last one as ONNX has them: Transpose<perm=[0, -1, 1]>(x) ->
// Transpose<perm=[0, 2, 1]>(x)
//
// TensorRT takes such a permutation for what is meant, ONNX Runtime refuses the model, and the passes that follow read
// permutations as ONNX has them.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "onnx/node_ref.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {

void count_axes_from_front(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (onnx::Node* node : graph->nodes()) {
      auto permutation = node->is("Transpose") ? node->ints("perm") : std::nullopt;
      const auto is_negative = [](std::int64_t axis) { return axis < 0; };
      if (!permutation || std::none_of(permutation->begin(), permutation->end(), is_negative)) continue;
      for (std::int64_t& axis : *permutation) {
        if (axis < 0) axis += static_cast<std::int64_t>(permutation->size());
      }
      node->attributes.insert_or_assign("perm", onnx::NodeAttribute(onnx::AttributeData(*std::move(permutation))));
      rewriter.record({.nodes = {ref_of(*node)}}, "Transpose with axes counted from the first",
                      "ONNX counts the axes of a permutation from the first, and other runtimes refuse negative ones",
                      "by definition: axis -1 is the last one");
    }
  }
}

}  // namespace graft::passes
