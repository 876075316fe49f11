// Whether the operators of a model take what their nodes give them.
#include "onnx/check_operators.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "graft/error.hpp"
#include "onnx/faults.hpp"
#include "onnx/operator_node.hpp"

namespace graft::onnx {

void check_operators(const Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes) {
  bool has_operators = false;
  model.graph().for_each_node([&](const Node& node) { has_operators = has_operators || find_operator_for(node); });
  if (!has_operators) return;
  std::optional<Error> fault;
  Model inferred = model.clone();
  infer_around_faults(inferred, input_shapes, [&](const Node& node, const Error& error) {
    if (!fault && find_operator_for(node)) fault = error;
  });
  std::as_const(inferred).graph().for_each_node([&](const Node& node) {
    try {
      if (!fault) check_operator(node);
    } catch (const Error& error) {
      fault = error;
    }
  });
  if (fault) throw Error(fault->kind(), fmt::format("{}: {}", model.source, fault->what()));
}

}  // namespace graft::onnx
