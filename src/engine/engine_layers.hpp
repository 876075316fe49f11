// The kernels of a built engine with their types, as TensorRT reports them, and the nodes of the model that each kernel
// computes.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "onnx/model.hpp"

namespace graft::engine {

struct EngineTensor {
  std::string name;
  std::string type;
};

struct EngineLayer {
  std::string name;
  std::string kind;                  ///< The kind of kernel, as TensorRT names it.
  std::vector<EngineTensor> inputs;  ///< The inputs without constants.
  std::vector<EngineTensor> outputs;
  /// Nodes of the model by the names that TensorRT's parser uses, without QuantizeLinear and DequantizeLinear.
  std::vector<std::string> nodes;
  bool is_matrix = false;  ///< Whether the kernel computes a convolution or a matrix product.
};

/// A convolution or matrix product that reads another type than int8 or f8 although it follows DequantizeLinear.
struct FloatIsland {
  NodeRef node;
  std::string layer;
  std::string type;  ///< The type of the first input that is not int8 or f8.
};

struct EngineLayers {
  std::vector<EngineLayer> layers;
  std::vector<FloatIsland> islands;
  std::string unknown;  ///< The reason why there are no layers.
};

/// Returns the kernels of an engine. `told` is the field `engine_layers` of the engine driver's result.
[[nodiscard]] EngineLayers engine_layers(const onnx::Model& model, const nlohmann::json& told);

/// Returns how many of the layers read each type.
[[nodiscard]] std::map<std::string, std::size_t> count_reads(const std::vector<EngineLayer>& layers);
/// Returns the engine's convolutions and matrix products.
[[nodiscard]] std::vector<EngineLayer> matrix_layers(const EngineLayers& engine);

}  // namespace graft::engine
