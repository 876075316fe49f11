// Pass drop_default_modes: removes the mode of a GridSample where it is the default.
//
//   GridSample<mode="linear">(x, grid)   becomes   GridSample(x, grid)
//
// Operator set 20 renamed the modes bilinear and bicubic. The parsers of TensorRT-RTX 1.4 and 1.5 do not recognize the
// new names and sample the nearest pixel without a message, measured by reading the layer that they create; without the
// attribute they interpolate. Users saw the same in the full TensorRT up to 11.1.
#include "onnx/node_ref.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {

void drop_default_modes(Rewriter& rewriter) {
  constexpr std::int64_t renamed_in = 20;
  if (rewriter.model().graph().opset() < renamed_in) return;
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (onnx::Node* node : graph->nodes()) {
      if (!node->is("GridSample") || node->string_or("mode", "") != "linear") continue;
      node->attributes.erase("mode");
      rewriter.record({.nodes = {ref_of(*node)}}, "GridSample without mode",
                      "parsers of TensorRT read the mode linear as nearest, and read an absent mode correctly",
                      "by definition of GridSample: linear is the default");
    }
  }
}

}  // namespace graft::passes
