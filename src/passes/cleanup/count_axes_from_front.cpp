// Pass count_axes_from_front: replaces negative axes in the permutation of a Transpose.
//
//   Transpose<perm=[0, -1, 1]>(x)   becomes   Transpose<perm=[0, 2, 1]>(x)
//
// TensorRT accepts negative axes in `perm`. ONNX does not have them: ONNX Runtime refuses the model, and the passes
// that follow expect axes from 0 on.
#include <algorithm>
#include <cstdint>

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
      rewriter.record({.nodes = {ref_of(*node)}}, "Transpose with axes counted from the front",
                      "ONNX counts the axes of a permutation from the front, and other runtimes refuse negative axes",
                      "by definition: axis -1 is the last axis");
    }
  }
}

}  // namespace graft::passes
