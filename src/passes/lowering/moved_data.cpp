// Recognizes nodes that only move or select elements.
#include "passes/lowering/moved_data.hpp"

#include <algorithm>
#include <numeric>

#include "onnx/schema.hpp"

namespace graft::passes {
namespace {

bool has_nearest_elements(const onnx::Node& resize) {
  return resize.string_or("mode", "nearest") == "nearest" &&
         resize.string_or("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize";
}

}  // namespace

std::vector<std::size_t> moved_inputs(const onnx::Node& node) {
  if (!node.domain.empty() || node.inputs.empty() || node.input(0) == nullptr || node.outputs.empty()) return {};
  std::vector<std::size_t> inputs;
  if (node.is("Concat") || node.is("Max") || node.is("Min")) {
    inputs.resize(node.inputs.size());
    std::iota(inputs.begin(), inputs.end(), 0);
  } else if (node.is("Where")) {
    inputs = {1, 2};
  } else if (has_trait(node, onnx::trait::moves_data) || node.is("ReduceMax") || node.is("ReduceMin") ||
             node.is("Pad") || (node.is("MaxPool") && !node.is_output_used(1)) || node.is("GlobalMaxPool") ||
             (node.is("Resize") && has_nearest_elements(node))) {
    inputs = {0};
  }
  const bool is_complete =
      std::all_of(inputs.begin(), inputs.end(), [&](std::size_t i) { return node.input(i) != nullptr; });
  return is_complete ? inputs : std::vector<std::size_t>();
}

}  // namespace graft::passes
