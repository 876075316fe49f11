// Checks the declared inputs and outputs. The messages are the same for every engine.
#include "runtime/model_io.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graft/error.hpp"
#include "onnx/check_types.hpp"
#include "onnx/schema.hpp"

namespace graft::runtime {

DeclaredInputs::DeclaredInputs(const onnx::Model& model, const std::function<bool(onnx::ElementType)>& takes)
    : source_(model.source) {
  for (const onnx::Value* value : model.graph().inputs()) {
    if (value->initializer) {
      defaults_.insert(value->name);
      continue;
    }
    if (!value->type || !takes(*value->type)) {
      const bool is_string = value->type == onnx::ElementType::string;
      throw Error(fmt::format(
          "{}: input '{}' is {}, which the CPU engine does not accept{}", source_, value->name,
          value->type ? "of type " + to_string(*value->type) : std::string("not a tensor, or a tensor of unknown type"),
          is_string ? "\n" + step_for_strings(model, *value) : ""));
    }
    inputs_.push_back({.name = value->name, .type = *value->type, .shape = value->shape});
  }
}

std::string DeclaredInputs::names() const {
  std::string names;
  for (const Input& input : inputs_) names += (names.empty() ? "'" : ", '") + input.name + "'";
  return names.empty() ? "none" : names;
}

std::string DeclaredInputs::place_of(const Input& input) const {
  return fmt::format("{}: input '{}'", source_, input.name);
}

void DeclaredInputs::check(const TensorMap& inputs) const {
  for (const auto& entry : inputs) {
    const std::string& name = entry.first;
    const auto known = [&](const Input& input) { return input.name == name; };
    if (std::any_of(inputs_.begin(), inputs_.end(), known)) continue;
    if (defaults_.contains(name)) {
      throw Error(
          fmt::format("{}: input '{}' has a default value in the file, which the CPU engine uses; do not pass a value "
                      "for this input",
                      source_, name));
    }
    throw Error(fmt::format("{}: the model has no input '{}'; its inputs are {}", source_, name, names()));
  }
  for (const Input& input : inputs_) {
    const auto found = inputs.find(input.name);
    if (found == inputs.end()) {
      throw Error(fmt::format("{} ({}) has no value; the model's inputs are {}\nPass a value for each input",
                              place_of(input), type_and_shape(input.type, input.shape), names()));
    }
    const std::string mismatch = mismatch_of(found->second, input.type, input.shape);
    if (!mismatch.empty()) throw Error(fmt::format("{}: {}", place_of(input), mismatch));
  }
}

void fix_defaults(onnx::Model& model) {
  for (onnx::Value* value : std::vector<onnx::Value*>(model.graph().inputs())) {
    if (value->initializer) model.graph().set_is_input(*value, false);
  }
}

void add_extra_outputs(onnx::Model& model, const std::vector<std::string>& names) {
  onnx::Graph& graph = model.graph();
  for (const std::string& name : names) {
    onnx::Value* value = graph.find_local(name);
    if (value == nullptr) {
      throw Error(model.source + ": there is no tensor '" + name + "' in the main graph to return as an extra output");
    }
    const auto& outputs = graph.outputs();
    if (std::find(outputs.begin(), outputs.end(), value) == outputs.end()) graph.add_output(*value);
  }
}

std::vector<std::string> output_names(const onnx::Model& model) {
  std::vector<std::string> names;
  for (const onnx::Value* value : model.graph().outputs()) {
    // Sequences and maps are stored in `opaque` in wire form and have no element type. Tensors also have an `opaque`
    // part, but only for the annotations that newer exporters write.
    if (value->type == onnx::ElementType::string || (!value->type && !value->opaque.empty())) {
      throw Error(model.source + ": output '" + value->name +
                  "' is not a numeric tensor; the CPU engine returns only numeric tensors");
    }
    names.push_back(value->name);
  }
  return names;
}

void check_constant_graph(const onnx::Model& model) {
  const DeclaredInputs inputs(model, [](onnx::ElementType) { return true; });
  if (!inputs.all().empty()) {
    throw Error(Error::Kind::internal, model.source + ": a constant graph has no inputs; found " + inputs.names());
  }
  model.graph().for_each_node([&](const onnx::Node& node) {
    if (has_trait(node, onnx::trait::random)) {
      throw Error(model.source + ": " + onnx::describe(node) +
                  " returns different values in each run, so its output is not a constant");
    }
  });
}

std::string type_and_shape(onnx::ElementType type, const std::optional<Shape>& shape) {
  return onnx::to_string(type) + (shape ? to_string(*shape) : " of any shape");
}

std::string types_and_shapes(const TensorMap& inputs) {
  std::string text;
  for (const auto& [name, tensor] : inputs) {
    text += (text.empty() ? "" : ", ") + name + ": " +
            type_and_shape(tensor.type, Shape(tensor.dims.begin(), tensor.dims.end()));
  }
  return text.empty() ? "no inputs" : text;
}

std::map<std::string, Shape, std::less<>> shapes_of(const TensorMap& tensors) {
  std::map<std::string, Shape, std::less<>> shapes;
  for (const auto& [name, tensor] : tensors) shapes.emplace(name, Shape(tensor.dims.begin(), tensor.dims.end()));
  return shapes;
}

}  // namespace graft::runtime
