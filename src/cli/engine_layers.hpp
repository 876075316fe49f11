// What a built engine consists of: its kernels with their types, as TensorRT tells them, and the model's nodes in them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "graph/model.hpp"

namespace graft::cli {

struct EngineTensor {
  std::string name;
  std::string type;
};

struct EngineLayer {
  std::string name;
  std::string kind;                  ///< TensorRT's word for it.
  std::vector<EngineTensor> inputs;  ///< Constants are not among them.
  std::vector<EngineTensor> outputs;
  std::vector<std::string> nodes;  ///< Of the model, without QuantizeLinear and DequantizeLinear.
  bool is_matrix = false;          ///< A convolution or a matrix product.
};

/// A convolution or a matrix product that reads another type than int8 although it stands behind DequantizeLinear.
struct FloatIsland {
  std::string node;
  std::string layer;
  std::string type;
};

struct EngineLayers {
  std::vector<EngineLayer> layers;
  std::vector<FloatIsland> islands;
  std::string unknown;  ///< Why there are no layers.
};

/// `told` is the engine driver's `engine_layers`.
[[nodiscard]] EngineLayers engine_layers(const Model& model, const nlohmann::json& told);

/// The layers, what they read, and a note for each island.
void print_layers(const Console& console, const EngineLayers& engine);

/// Adds `layers` and `layer_summary`.
void add_layers(Json& result, const EngineLayers& engine);

}  // namespace graft::cli
