// What a built engine consists of: its kernels with their types, as TensorRT tells them, and the model's nodes in them.
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
  std::string kind;                  ///< TensorRT's word for it.
  std::vector<EngineTensor> inputs;  ///< Constants are not among them.
  std::vector<EngineTensor> outputs;
  std::vector<std::string>
      nodes;               ///< As TensorRT calls those of the model, without QuantizeLinear and DequantizeLinear.
  bool is_matrix = false;  ///< A convolution or a matrix product.
};

/// A convolution or a matrix product that reads another type than int8 although it stands after DequantizeLinear.
struct FloatIsland {
  NodeRef node;
  std::string layer;
  std::string type;  ///< Of what it reads.
};

struct EngineLayers {
  std::vector<EngineLayer> layers;
  std::vector<FloatIsland> islands;
  std::string unknown;  ///< Why there are no layers.
};

/// `told` is the engine driver's `engine_layers`.
[[nodiscard]] EngineLayers engine_layers(const onnx::Model& model, const nlohmann::json& told);

/// How many of the layers read each type.
[[nodiscard]] std::map<std::string, std::size_t> count_reads(const std::vector<EngineLayer>& layers);
/// Its convolutions and matrix products.
[[nodiscard]] std::vector<EngineLayer> matrix_layers(const EngineLayers& engine);

}  // namespace graft::engine
