// Pass raise_opset: models of old operator sets come to the one that the functions of Graft's operators are written in.
#include <fmt/format.h>

#include "graft/error.hpp"
#include "graph/opset.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft {

void raise_model_opset(Rewriter& rewriter) {
  Model& model = rewriter.model();
  const std::int64_t opset = model.graph().opset();
  if (opset == 0 || opset >= working_opset) return;
  const std::vector<std::string> nodes{fmt::format("the model, in operator set {}", opset)};
  const std::string replacement = fmt::format("the same in operator set {}", working_opset);
  const std::string reason = "a model and its functions have to be of one operator set";
  Model before = model.clone();
  try {
    raise_opset(model);
  } catch (const Error& error) {
    rewriter.record_undone(nodes, replacement, reason, error.what());
    return;
  }
  Rewriter::Verdict verdict = rewriter.prove_models(before, model);
  if (verdict.proven) {
    rewriter.record(nodes, replacement, reason, std::move(verdict.text));
  } else {
    model = std::move(before);
    rewriter.record_undone(nodes, replacement, reason, std::move(verdict.text));
  }
}

}  // namespace graft
