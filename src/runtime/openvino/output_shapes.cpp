// Infers the expected output shapes once for each combination of input shapes.
#include "runtime/openvino/output_shapes.hpp"

#include <fmt/format.h>

#include <utility>

#include "graft/error.hpp"
#include "onnx/shape_inference.hpp"
#include "runtime/engine_limit.hpp"
#include "runtime/model_io.hpp"

namespace graft::runtime {
namespace {

/// Returns whether the shape agrees with the expected one. Expected dimensions that are not constant depend on the
/// inputs' values and match every size.
bool fits(const Shape& expected, const std::vector<std::int64_t>& found) {
  if (expected.size() != found.size()) return false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (expected[i].is_constant() && expected[i].value() != found[i]) return false;
  }
  return true;
}

}  // namespace

void OutputShapes::check(const TensorMap& inputs, const TensorMap& outputs) {
  std::map<std::string, Shape, std::less<>> shapes = shapes_of(inputs);
  if (shapes != input_shapes_) {
    infer(shapes, outputs);
    input_shapes_ = std::move(shapes);
  }
  for (const auto& [name, tensor] : outputs) {
    const auto expected = expected_.find(name);
    if (expected == expected_.end() || fits(expected->second, tensor.dims)) continue;
    throw EngineLimit(fmt::format(
        "{}: OpenVINO returned output '{}' with the shape {} for the inputs {}; by ONNX's rules the shape is {}",
        model_->source, name, to_string(Shape(tensor.dims.begin(), tensor.dims.end())), types_and_shapes(inputs),
        to_string(expected->second)));
  }
}

void OutputShapes::infer(const std::map<std::string, Shape, std::less<>>& input_shapes, const TensorMap& outputs) {
  expected_.clear();
  onnx::Model inferred = model_->clone();
  try {
    infer_shapes(inferred, input_shapes);
  } catch (const Error& refused) {
    if (refused.kind() != Error::Kind::bad_input) throw;
    return;  // Shape inference refuses what OpenVINO computed, so there is no expected shape to compare with.
  }
  for (const auto& [name, tensor] : outputs) {
    const onnx::Value* value = std::as_const(inferred).graph().find_local(name);
    if (value != nullptr && value->shape) expected_.emplace(name, *value->shape);
  }
}

}  // namespace graft::runtime
