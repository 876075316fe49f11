// Pass upgrade_opset: raises models of older operator sets to the one in which the functions of Graft operators are
// written.
//
//   Squeeze<axes=[1]>(x), in operator set 11   becomes   Squeeze(x, [1]), in operator set 17
#include <fmt/format.h>

#include "graft/error.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/opset.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {

void upgrade_model_opset(Rewriter& rewriter) {
  onnx::Model& model = rewriter.model();
  const std::int64_t opset = model.graph().opset();
  if (opset == 0 || opset >= onnx::working_opset) return;
  const Rewriter::Subject whole{.others = fmt::format("the model, in operator set {}", opset)};
  const std::string replacement = fmt::format("the same model in operator set {}", onnx::working_opset);
  const std::string reason = "a model and its functions must have one operator set";
  onnx::Model before = model.clone();
  std::vector<onnx::RaisedNode> raised;
  try {
    raised = upgrade_opset(model);
  } catch (const Error& error) {
    rewriter.record_rejected(whole, replacement, reason, error.what());
    return;
  }
  // Most operators only get other inputs and attributes. Nodes that other operators compute now are compared one by
  // one: a model with operators that only TensorRT has cannot be run as a whole.
  std::size_t compared = 0;
  for (const onnx::RaisedNode& node : raised) {
    if (!node.computed_anew || node.outputs.empty()) continue;
    Rewriter::Verdict verdict = rewriter.prove_values(before, model, node.inputs, node.outputs);
    if (!verdict.proven) {
      model = std::move(before);
      rewriter.record_rejected(whole, replacement, reason,
                               fmt::format("{}: {}", onnx::describe(node.node), verdict.text));
      return;
    }
    ++compared;
  }
  rewriter.record(whole, replacement, reason,
                  fmt::format("{} nodes have new inputs and attributes, by definition; {} are computed by other "
                              "operators, compared by running both",
                              raised.size() - compared, compared));
}

}  // namespace graft::passes
