// Small models written as text, for these tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graft/operator.hpp"
#include "graph/functions.hpp"
#include "graph/model.hpp"

namespace graft_test {

struct Input {
  std::string name;
  graft::ElementType type = graft::ElementType::f32;
  graft::Shape shape;
};

/// Opset 17.
inline graft::Model model_of(const std::vector<Input>& inputs, const std::string& nodes,
                             const std::vector<std::string>& outputs) {
  graft::Model model;
  model.source = "test.onnx";
  model.graph().name = "test";
  model.graph().opset_imports[""] = 17;
  model.graph().opset_imports[std::string(graft::onnx_domain)] = 1;
  for (const Input& input : inputs) {
    graft::Value* value = model.graph().add_input(input.name);
    value->type = input.type;
    value->shape = input.shape;
  }
  graft::parse_nodes(model.graph(), nodes, outputs, [](std::string_view) { return std::nullopt; });
  return model;
}

}  // namespace graft_test
