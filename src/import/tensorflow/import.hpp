// Reads TensorFlow's frozen graphs (.pb, or .pbtxt in text form) without TensorFlow.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graft/report/model.hpp"
#include "graft/report/ops.hpp"
#include "onnx/model.hpp"

namespace graft {

struct TensorFlowOptions {
  /// Tensors to keep as outputs, "node" or "node:1"; an empty list keeps all tensors that no node reads.
  std::vector<std::string> outputs;
  /// Shapes of inputs that replace the shapes in the file, by placeholder name.
  std::map<std::string, Shape, std::less<>> input_shapes;
  report::Origin* origin = nullptr;  ///< If not null, receives facts about the original network.
  /// Called before each node is converted, with the number of nodes that are done and of all nodes; may be empty. An
  /// exception from it stops the reading.
  std::function<void(std::size_t done, std::size_t total)> progress = {};
};

using report::TensorFlowOperator;

[[nodiscard]] std::vector<TensorFlowOperator> tensorflow_operators();

/// Reads a GraphDef as an ONNX model of opset 17. Inputs and outputs keep their axis order (NHWC if the network uses
/// it), and every tensor keeps its name: "node", or "node:1" for the second output of a node. Function calls are
/// inlined, and branches that only run in training are dropped. If and While become If and Loop, and so do the loops of
/// TensorFlow 1. Throws Error naming file, node and operator for malformed input. Unknown operators are reported all at
/// once.
[[nodiscard]] onnx::Model read_tensorflow(const std::filesystem::path& path, const TensorFlowOptions& options = {});

/// Parses a GraphDef from memory. `name` is the file's name in messages. If `owner` is given, it keeps the bytes alive
/// and the model's weights refer to them; otherwise the weights are copied.
[[nodiscard]] onnx::Model parse_tensorflow(std::string_view bytes, std::string name,
                                           const TensorFlowOptions& options = {},
                                           std::shared_ptr<const void> owner = nullptr);

}  // namespace graft
