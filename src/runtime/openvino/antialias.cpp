// Replaces Resize by one MatMul per axis that changes size: from the right for the last axis, from the left for every
// other axis, which is transposed to the second-to-last place first.
#include "runtime/openvino/antialias.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "onnx/resize_weights.hpp"
#include "onnx/schema.hpp"
#include "onnx/shape_inference.hpp"

namespace graft::runtime {
namespace {

using onnx::AxisScale;

/// The largest number of elements of a matrix; a Resize that needs a larger one is left to OpenVINO.
constexpr std::int64_t largest_matrix = std::int64_t{1} << 24;

bool is_antialiased(const onnx::Node& node) {
  return node.is("Resize") && node.int_or("antialias", 0) != 0 && node.string_or("mode", "nearest") != "nearest";
}

std::optional<std::vector<double>> numbers_of(const onnx::Node& node, std::size_t input) {
  const onnx::Value* value = node.input(input);
  const std::optional<onnx::TensorData> constant = value == nullptr ? std::nullopt : value->constant();
  return constant ? constant->numbers() : std::nullopt;
}

/// Returns the ratio between output size and input size for each axis of a Resize, or nothing if a size is not fixed or
/// no axis shrinks.
std::optional<std::vector<AxisScale>> scales_of(const onnx::Node& node) {
  const onnx::Value& x = *node.input(0);
  if (!x.shape || x.shape->size() < 2) return std::nullopt;
  const std::optional<std::vector<std::int64_t>> axes = onnx::resized_axes(node, x.shape->size());
  const bool by_sizes = node.input(3) != nullptr;
  const std::optional<std::vector<double>> wanted = numbers_of(node, by_sizes ? 3 : 2);
  if (!axes || !wanted || wanted->size() != axes->size()) return std::nullopt;
  std::vector<AxisScale> scales(x.shape->size());
  bool shrinks = false;
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const auto place = static_cast<std::size_t>((*axes)[i]);
    const Dim& dim = (*x.shape)[place];
    if (!by_sizes && (*wanted)[i] == 1) continue;
    if (!dim.is_constant() || dim.value() < 1) return std::nullopt;
    AxisScale& axis = scales[place];
    axis = onnx::scale_axis(dim.value(), (*wanted)[i], by_sizes);
    if (axis.to < 1 || axis.from > largest_matrix / axis.to) return std::nullopt;
    shrinks = shrinks || axis.scale < 1;
  }
  return shrinks ? std::optional(scales) : std::nullopt;
}

onnx::Value* transposed(onnx::Graph& graph, onnx::Node& before, onnx::Value* x,
                        const std::vector<std::int64_t>& order) {
  onnx::Node* node = graph.add_node("Transpose", {x}, {x->name}, &before);
  node->attributes.emplace("perm", onnx::NodeAttribute(onnx::AttributeData(order)));
  return node->output();
}

onnx::Value* cast(onnx::Graph& graph, onnx::Node& before, onnx::Value* x, onnx::ElementType to) {
  onnx::Node* node = graph.add_node("Cast", {x}, {x->name}, &before);
  node->attributes.emplace("to", onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(to))));
  return node->output();
}

void replace(onnx::Node& node, const std::vector<AxisScale>& scales) {
  onnx::Graph& graph = *node.graph;
  onnx::Value& output = *node.output();
  const onnx::ElementType type = *node.input(0)->type;
  const onnx::Interpolation how = onnx::interpolation_of(node);
  onnx::Value* x = node.input(0);
  if (type != onnx::ElementType::f32) x = cast(graph, node, x, onnx::ElementType::f32);
  const std::size_t last = scales.size() - 1;
  for (std::size_t i = 0; i <= last; ++i) {
    const AxisScale& axis = scales[i];
    if (axis.from == 0 || (axis.from == axis.to && axis.scale == 1)) continue;
    const std::vector<double> matrix = onnx::resize_matrix(axis, how);  // [to, from]
    onnx::Value* weights = graph.add_constant(
        output.name + "/weights", onnx::TensorData::from_numbers(onnx::ElementType::f32, {axis.to, axis.from}, matrix));
    std::vector<std::int64_t> order(scales.size());
    std::iota(order.begin(), order.end(), 0);
    if (i == last) {
      weights = transposed(graph, node, weights, {1, 0});
      x = graph.add_node("MatMul", {x, weights}, {output.name}, &node)->output();
      continue;
    }
    std::swap(order[i], order[last - 1]);
    const bool is_beside_last = i == last - 1;
    if (!is_beside_last) x = transposed(graph, node, x, order);
    x = graph.add_node("MatMul", {weights, x}, {output.name}, &node)->output();
    if (!is_beside_last) x = transposed(graph, node, x, order);
  }
  if (type != onnx::ElementType::f32) x = cast(graph, node, x, type);
  graph.replace_all_uses(output, *x);
  graph.remove_node(node);
}

}  // namespace

void compute_antialias(onnx::Model& model) {
  bool has_any = false;
  std::as_const(model.graph()).for_each_node([&](const onnx::Node& node) {
    has_any = has_any || is_antialiased(node);
  });
  if (!has_any) return;
  infer_shapes(model);
  std::vector<std::pair<onnx::Node*, std::vector<AxisScale>>> found;
  model.graph().for_each_node([&](onnx::Node& node) {
    const bool is_plain = is_antialiased(node) && node.input(0) != nullptr && node.input(0)->type &&
                          onnx::is_floating_point(*node.input(0)->type) &&
                          node.string_or("keep_aspect_ratio_policy", "stretch") == "stretch" &&
                          node.string_or("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize";
    if (!is_plain) return;
    if (auto scales = scales_of(node)) found.emplace_back(&node, std::move(*scales));
  });
  for (const auto& [node, scales] : found) replace(*node, scales);
}

}  // namespace graft::runtime
