// Reads Caffe's networks (.prototxt and .caffemodel) without Caffe.
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

struct CaffeOptions {
  std::vector<std::string> outputs;  ///< Blobs to keep as outputs; an empty list keeps all blobs that no layer reads.
  /// Shapes by blob name, which replace the shapes in the file.
  std::map<std::string, Shape, std::less<>> input_shapes;
  report::Origin* origin = nullptr;  ///< If not null, receives facts about the original network.
  /// Called before each layer is converted, with the number of layers that are done and of all layers; may be empty. An
  /// exception from it stops the reading.
  std::function<void(std::size_t done, std::size_t total)> progress = {};
};

/// Reads the network as Caffe runs it in phase TEST. Layers that only serve training, such as losses and accuracies,
/// are left out. Returns an ONNX model of opset 17. Blobs keep their names. If layers work in place, the output of the
/// last one has the name of the blob, and each earlier output has the name of its layer. Both files may be in the old
/// format (V1). Throws Error naming file, layer and parameter for malformed input. Unknown layers are reported all at
/// once, and so are layers without weights.
[[nodiscard]] onnx::Model read_caffe(const std::filesystem::path& network, const std::filesystem::path& weights,
                                     const CaffeOptions& options = {});

/// Parses a network from memory. `weights` may be empty for a network without weights. If `owner` is given, it keeps
/// the weights alive and the model refers to them; otherwise they are copied.
[[nodiscard]] onnx::Model parse_caffe(const std::string& network, std::string_view weights,
                                      const std::string& network_name, const std::string& weights_name,
                                      const CaffeOptions& options = {}, std::shared_ptr<const void> owner = nullptr);

using report::CaffeField;
using report::CaffeLayer;

/// Returns all layer types that Graft reads, sorted by name.
[[nodiscard]] std::vector<CaffeLayer> caffe_layers();

}  // namespace graft
