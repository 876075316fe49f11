// Determines the ranges and libraries that a build of a model needs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "graft/operator/registry.hpp"
#include "graft/toolkit/build.hpp"
#include "inspect/suggested_ranges.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/operator_node.hpp"
#include "operator_library/load.hpp"
#include "toolkit/access.hpp"

namespace graft::toolkit {
namespace {

/// Returns whether the value is the target shape of a Reshape of a tensor with constant sizes, directly or through Cast
/// and Identity.
bool is_shape_of_fixed_sizes(const onnx::Value& value) {
  return std::any_of(value.uses.begin(), value.uses.end(), [](const onnx::Use& use) {
    const onnx::Node& node = *use.node;
    if ((node.is("Cast") || node.is("Identity")) && node.output() != nullptr) {
      return is_shape_of_fixed_sizes(*node.output());
    }
    const onnx::Value* data = node.is("Reshape") && use.index == 1 ? node.input(0) : nullptr;
    return data != nullptr && data->shape && onnx::has_known_sizes(*data->shape);
  });
}

}  // namespace

SuggestedRanges suggest_ranges(const Model& model) {
  SuggestedRanges found;
  const std::vector<inspect::SuggestedRanges> suggested = inspect::ranges_worth_a_build(model_of(model));
  for (const auto& [name, range] : suggested.front()) {
    if (!range.sizes.empty()) found.ranges.push_back(fmt::format("{}={}", name, range.sizes));
    if (range.decides_sizes) found.ranges.push_back(fmt::format("{}={}", name, range.values));
    found.are_computable = found.are_computable && range.is_computable;
  }
  return found;
}

BuildNeeds find_build_needs(const Model& model) {
  BuildNeeds needs;
  const onnx::Graph& graph = model_of(model).graph();
  for (const onnx::Value* input : graph.inputs()) {
    if (!onnx::has_known_sizes(*input)) continue;
    (is_shape_of_fixed_sizes(*input) ? needs.shapes_of_fixed_tensors : needs.fixed_inputs).push_back(input->name);
  }
  std::set<std::string> operators;
  graph.for_each_node([&](const onnx::Node& node) {
    needs.may_need_plugin = needs.may_need_plugin || onnx::find_onnx_operator(node) != nullptr;
    const onnx::OperatorMatch match = find_operator_for(node);
    const OperatorLibrary* library = match ? library_of(*match.type) : nullptr;
    if (library == nullptr) return;
    operators.emplace(match.type->name);
    if (has_plugins(*library) && std::ranges::find(needs.libraries, library->file) == needs.libraries.end()) {
      needs.libraries.push_back(library->file);
    }
  });
  needs.library_operators.assign(operators.begin(), operators.end());
  return needs;
}

std::string to_string(const ShapeRanges::value_type& shape) {
  const auto& [name, range] = shape;
  return fmt::format("{}={}..{}..{}", name, fmt::join(range.smallest, "x"), fmt::join(range.usual, "x"),
                     fmt::join(range.largest, "x"));
}

}  // namespace graft::toolkit
