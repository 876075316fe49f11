// Functions that all engines share.
#include "runtime/engine.hpp"

namespace graft::runtime {
namespace {

bool fits(const onnx::TensorData& tensor, onnx::ElementType type, const std::optional<Shape>& shape) {
  if (type != tensor.type) return false;
  if (!shape) return true;
  if (shape->size() != tensor.dims.size()) return false;
  for (std::size_t axis = 0; axis < tensor.dims.size(); ++axis) {
    const Dim& dim = (*shape)[axis];
    if (dim.is_constant() && dim.value() != tensor.dims[axis]) return false;
  }
  return true;
}

}  // namespace

TensorMap CompiledModel::run(const TensorMap& inputs) {
  TensorMap copies;
  run(inputs, [&](const TensorMap& outputs) {
    copies = outputs;
    for (auto& [name, tensor] : copies) tensor.bytes = onnx::Bytes(std::string(tensor.bytes.view()));
  });
  return copies;
}

std::string mismatch_of(const onnx::TensorData& tensor, onnx::ElementType type, const std::optional<Shape>& shape) {
  if (fits(tensor, type, shape)) return "";
  return "the tensor is " + to_string(tensor.type) + to_string(Shape(tensor.dims.begin(), tensor.dims.end())) +
         "; it must be " + to_string(type) + (shape ? to_string(*shape) : " of any shape");
}

}  // namespace graft::runtime
