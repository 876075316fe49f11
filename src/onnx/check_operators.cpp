// Runs shape inference on a copy, and reports the first fault of a node.
#include "onnx/check_operators.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/faults.hpp"
#include "onnx/operator_calls.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/shape_inference.hpp"

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

void infer_and_check_nodes(Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes) {
  try {
    if (input_shapes.empty()) {
      infer_shapes(model);
    } else {
      infer_shapes(model, input_shapes);
    }
    std::as_const(model).graph().for_each_node([&](const Node& node) {
      try {
        check_operator(node);
      } catch (const Error& error) {
        throw Error(error.kind(), fmt::format("{}: {}", model.source, error.what()));
      }
    });
  } catch (const Error& error) {
    if (!input_shapes.empty()) throw;  // The contradiction may be caused by these shapes.
    throw with_next_step(error, "Correct the node in the program that wrote the model");
  }
}

void check_nodes(const Model& model) {
  Model copy = model.clone();
  infer_and_check_nodes(copy);
}

void check_has_kernels(const Model& model) {
  const std::vector<const Node*> calls = calls_without_operator(model);
  if (calls.empty()) return;
  throw Error(
      fmt::format("{}: {}: no loaded library has the operator {}, so there is no kernel for it, only the function in "
                  "the file\nLoad its library with {}, or leave out {} to compute the function",
                  model.source, describe(*calls.front()), called_operator(*calls.front()),
                  setting_name(Setting::operator_libraries), setting_name(Setting::own_kernels)));
}

}  // namespace graft::onnx
