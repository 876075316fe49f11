// TensorRT-RTX 1.7 imports f64 tensors, constants included, as f32, and says nothing about it.
#include "inspect/f64_nodes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "onnx/schema.hpp"
#include "onnx/tensor_data.hpp"

namespace graft::inspect {
namespace {

bool is_f64(const onnx::Value* value) { return value != nullptr && value->type == onnx::ElementType::f64; }

bool is_integer(const onnx::Value* value) { return value != nullptr && value->type && onnx::is_integer(*value->type); }

/// Integers above 2^24 are not exact in f32.
bool casts_integers(const onnx::Node& node) { return is_integer(node.input(0)) || is_integer(node.output()); }

bool computes_in_f64(const onnx::Node& node) {
  const bool has_f64 = std::any_of(node.inputs.begin(), node.inputs.end(), is_f64) ||
                       std::any_of(node.outputs.begin(), node.outputs.end(), is_f64);
  if (!has_f64 || !node.subgraphs().empty()) return false;
  if (onnx::is_any_of(node, {"Cast", "CastLike"})) return casts_integers(node);
  return !onnx::is_any_of(
      node, {"Concat", "Constant", "ConstantOfShape", "Expand", "Flatten", "Gather", "GatherND", "Identity", "Reshape",
             "Shape", "Size", "Slice", "Split", "Squeeze", "Tile", "Where", "Transpose", "Unsqueeze", "DepthToSpace"});
}

/// Returns at most `most` of the words, and the number of the others.
std::string list(std::vector<std::string> words, std::string_view others) {
  constexpr std::size_t most = 5;
  const std::size_t more = words.size() - std::min(words.size(), most);
  words.resize(words.size() - more);
  const std::string listed = fmt::format("{}", fmt::join(words, ", "));
  return more == 0 ? listed : fmt::format("{} and {} more {}", listed, more, others);
}

}  // namespace

std::optional<std::string> f64_warning(const onnx::Model& model) {
  std::vector<std::string> nodes;
  model.graph().for_each_node([&](const onnx::Node& node) {
    if (computes_in_f64(node)) nodes.push_back(onnx::describe(node));
  });
  std::vector<std::string> ports;
  const auto add_port = [&](const onnx::Value* value) {
    if (is_f64(value)) ports.push_back(fmt::format("'{}'", value->name));
  };
  std::for_each(model.graph().inputs().begin(), model.graph().inputs().end(), add_port);
  std::for_each(model.graph().outputs().begin(), model.graph().outputs().end(), add_port);
  if (nodes.empty() && ports.empty()) return std::nullopt;
  std::vector<std::string> parts;
  if (!nodes.empty()) parts.push_back(list(std::move(nodes), "nodes"));
  if (!ports.empty()) {
    parts.push_back(fmt::format("an engine has f32 for {} of the model", list(std::move(ports), "inputs and outputs")));
  }
  return fmt::format("{}: TensorRT computes f64 in f32, to about 7 digits: {}", model.source, fmt::join(parts, "; "));
}

}  // namespace graft::inspect
