// Pass fuse_swish: x * sigmoid(x) becomes one Swish.
#include "graft/operator/registry.hpp"
#include "onnx/matcher.hpp"
#include "passes/fuse.hpp"
#include "passes/operator_fusion.hpp"

namespace graft::passes {
namespace {

Fusion read(const onnx::Match& match) {
  if (std::string obstacle = obstacle_of_x(match, "Swish"); !obstacle.empty()) return obstacle;
  return std::shared_ptr<Operator>(find_operator("Swish")->create());
}

void fuse_swish(Rewriter& rewriter) {
  static const onnx::Pattern pattern("y = Mul(x, Sigmoid(x))", "Swish");
  for (onnx::Graph* graph : rewriter.graphs()) fuse(rewriter, *graph, pattern, "x * sigmoid(x)", read);
}

}  // namespace

extern const OperatorFusion swish_fusion{
    .pass = {"fuse_swish", "an activation, once the larger patterns have been found", fuse_swish},
    .after = "fuse_leaky_relu"};

}  // namespace graft::passes
