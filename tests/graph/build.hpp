// Small models for the tests, written as text.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/functions.hpp"
#include "graph/model.hpp"

namespace graft::test {

struct Input {
  std::string name;
  ElementType type = ElementType::f32;
  std::optional<Shape> shape = std::nullopt;
};

/// `text` as parse_nodes reads it; the graph's outputs are `outputs`.
inline Model make_model(const std::vector<Input>& inputs, const std::string& text,
                        const std::vector<std::string>& outputs, std::int64_t opset = 17) {
  Model model;
  model.graph().opset_imports[""] = opset;
  for (const Input& input : inputs) {
    Value* value = model.graph().add_input(input.name);
    value->type = input.type;
    value->shape = input.shape;
  }
  parse_nodes(model.graph(), text, outputs, nullptr);
  model.graph().check();
  return model;
}

inline Node& producer(Model& model, const std::string& value) { return *model.graph().find(value)->producer; }

/// What an operation throws; empty where it throws nothing.
template <class F>
std::string error_of(F&& operation) {
  try {
    operation();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace graft::test
