// TensorRT lists the ONNX nodes of each of its kernels by name. This file finds these nodes in the model.
#include "engine/engine_layers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/read_fields.hpp"
#include "onnx/node_ref.hpp"

namespace graft::engine {
namespace {

using report::EngineLayer;
using report::EngineTensor;
using report::FloatIsland;
using NodesByName = std::map<std::string, const onnx::Node*, std::less<>>;

/// Returns the nodes of a model, sub-graphs included, by the names that TensorRT's parser gives them: node.name, or
/// "node_of_" and the name of the first output if the node has no name.
NodesByName nodes_by_name(const onnx::Model& model) {
  NodesByName nodes;
  model.graph().for_each_node([&](const onnx::Node& node) {
    const onnx::Value* output = node.output();
    const std::string of_output = output == nullptr ? "" : "node_of_" + output->name;
    nodes.emplace(node.name.empty() ? of_output : node.name, &node);
  });
  return nodes;
}

/// Returns the name of the outermost node in a layer name of TensorRT: "/Div" for "inner | /Div (L2Normalize)", a node
/// `inner` in the body of the function L2Normalize that the node '/Div' calls.
std::string_view outermost(std::string_view name) {
  constexpr std::string_view inside = " | ";
  const std::size_t start = name.rfind(inside);
  if (start == std::string_view::npos) return name;
  name.remove_prefix(start + inside.size());
  return name.substr(0, name.rfind(" ("));
}

bool is_rounding(const onnx::Node& node) { return node.is("QuantizeLinear") || node.is("DequantizeLinear"); }

bool is_matrix_node(const onnx::Node& node) {
  return node.is("Conv") || node.is("ConvTranspose") || node.is("Gemm") || node.is("MatMul");
}

/// Returns whether a kernel of this kind computes convolutions or matrix products. TensorRT-RTX uses the kinds
/// correlation, deconv and gemm; TensorRT uses CaskConvolution, CaskDeconvolutionV2, gemm and MatrixMultiply.
bool is_matrix_kind(std::string kind) {
  constexpr std::array<std::string_view, 5> words = {"conv", "correlation", "gemm", "matrix", "mha"};
  std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return kind.find(word) != std::string::npos; });
}

bool is_dequantized(const onnx::Value* value) {
  return value != nullptr && value->producer != nullptr && value->producer->is("DequantizeLinear");
}

/// Returns how many of the two factors of a convolution or matrix product are dequantized activations (not constants).
/// Returns 0 for other nodes, and unless both factors are results of DequantizeLinear.
std::size_t count_int8_inputs(const onnx::Node& node) {
  if (!is_matrix_node(node) || !is_dequantized(node.input(0)) || !is_dequantized(node.input(1))) return 0;
  const auto is_computed = [](const onnx::Value* value) { return !value->producer->input(0)->constant().has_value(); };
  return static_cast<std::size_t>(is_computed(node.input(0))) + static_cast<std::size_t>(is_computed(node.input(1)));
}

EngineLayer read_layer(const NodesByName& nodes, const nlohmann::json& told) {
  auto layer = read_fields<EngineLayer>(told);
  layer.is_matrix = is_matrix_kind(layer.kind);
  for (const std::string& name : std::exchange(layer.nodes, {})) {
    const std::string outer(outermost(name));
    const auto known = nodes.find(outer);
    const bool is_told = std::find(layer.nodes.begin(), layer.nodes.end(), outer) != layer.nodes.end();
    if (!is_told && (known == nodes.end() || !is_rounding(*known->second))) layer.nodes.push_back(outer);
  }
  return layer;
}

std::vector<FloatIsland> find_islands(const NodesByName& nodes, const std::vector<EngineLayer>& layers) {
  std::vector<FloatIsland> islands;
  for (const EngineLayer& layer : layers) {
    // The addend may be f32 in an int8 kernel. So the int8 and f8 inputs are counted, and a kernel is reported only if
    // it has fewer than expected.
    const auto is_int8 = [](const EngineTensor& tensor) { return tensor.type == "i8" || tensor.type == "f8e4m3fn"; };
    const auto other = std::find_if_not(layer.inputs.begin(), layer.inputs.end(), is_int8);
    const auto in_int8 = static_cast<std::size_t>(std::count_if(layer.inputs.begin(), layer.inputs.end(), is_int8));
    if (!layer.is_matrix || other == layer.inputs.end()) continue;
    for (const std::string& name : layer.nodes) {
      const auto node = nodes.find(name);
      if (node == nodes.end() || in_int8 >= count_int8_inputs(*node->second)) continue;
      islands.push_back({ref_of(*node->second), layer.name, other->type});
    }
  }
  return islands;
}

}  // namespace

report::EngineLayers read_engine_layers(const onnx::Model& model, const nlohmann::json& told) {
  report::EngineLayers engine;
  if (!told.is_object() || !told["layers"].is_array()) {
    engine.unknown =
        told.is_object() ? told.value("reason", "") : "the engine driver did not report the layers of the engine";
    return engine;
  }
  const NodesByName nodes = nodes_by_name(model);
  for (const auto& layer : told["layers"]) engine.layers.push_back(read_layer(nodes, layer));
  engine.islands = find_islands(nodes, engine.layers);
  return engine;
}

}  // namespace graft::engine
