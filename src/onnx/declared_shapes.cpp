// Infers shapes on a copy of the model, and compares them.
#include "onnx/declared_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "graft/error.hpp"
#include "onnx/faults.hpp"

namespace graft::onnx {
namespace {

bool contradict(const Shape& declared, const Shape& inferred) {
  if (declared.size() != inferred.size()) return true;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].is_constant() && inferred[i].is_constant() && declared[i].value() != inferred[i].value()) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<ContradictedShape> contradicted_shapes(const Model& model) {
  const auto values = model.graph().values();
  const bool declares = std::any_of(values.begin(), values.end(),
                                    [](const Value* value) { return value->producer != nullptr && value->shape; });
  if (!declares) return {};
  Model inferred = model.clone();
  try {
    infer_around_faults(inferred, {}, [](const Node& /*node*/, const Error& /*error*/) {});
  } catch (const Error&) {  // The next inference reports this error.
    return {};
  }
  std::vector<ContradictedShape> found;
  for (const Value* value : values) {
    if (value->producer == nullptr || !value->shape) continue;
    const Value* same = inferred.graph().find_local(value->name);
    if (same == nullptr || !same->shape || !contradict(*value->shape, *same->shape)) continue;
    found.push_back({.tensor = value->name, .declared = *value->shape, .inferred = *same->shape});
  }
  return found;
}

std::vector<std::string> contradicted_shape_warnings(const Model& model) {
  constexpr std::size_t few = 5;
  const std::vector<ContradictedShape> found = contradicted_shapes(model);
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < std::min(few, found.size()); ++i) {
    warnings.push_back(
        fmt::format("{}: the file declares the shape {} for '{}', but from inputs and nodes Graft infers {} and uses "
                    "this shape; correct the declared shape in the program that wrote the model",
                    model.source, to_string(found[i].declared), found[i].tensor, to_string(found[i].inferred)));
  }
  if (found.size() > few) {
    warnings.push_back(fmt::format("{}: the file declares {} more shapes that contradict the shapes that Graft infers",
                                   model.source, found.size() - few));
  }
  return warnings;
}

void fail_without_rank(const Model& model, const Value& input, std::string_view setting) {
  throw Error(fmt::format("{0}: input '{1}' has no shape, not even a rank\nSet its sizes, as in {2} {1}:1x3x224x224",
                          model.source, input.name, setting));
}

const Value* find_input_without_rank(const Model& model) {
  for (const Value* input : model.graph().inputs()) {
    if (!input->initializer && input->type && !input->shape) return input;
  }
  return nullptr;
}

void check_input_ranks(const Model& model, std::string_view setting) {
  if (const Value* input = find_input_without_rank(model)) fail_without_rank(model, *input, setting);
}

}  // namespace graft::onnx
