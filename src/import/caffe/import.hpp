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
  std::vector<std::string> outputs;  ///< Blobs to keep as outputs; if empty, all blobs that no layer reads.
  /// Shapes by the name of the blob, which replace the shapes in the file.
  std::map<std::string, Shape, std::less<>> input_shapes;
  report::Origin* origin = nullptr;  ///< Filled in unless it is null.
  /// Has the meaning of ImportOptions::progress in read_model.hpp.
  std::function<void(std::size_t done, std::size_t total)> progress = {};
};

/// Reads the network as Caffe would run it for testing, without layers that are only for training, losses and
/// accuracies. Returns an ONNX model of opset 17. Blobs keep their names; where layers work in place, the output of the
/// last one has the name of the blob, and each earlier output that of its layer. Both files may be in the old format
/// (V1). Throws Error naming file, layer and parameter for anything malformed. Unknown layers are reported all at once,
/// and so are layers without weights.
[[nodiscard]] onnx::Model read_caffe(const std::filesystem::path& network, const std::filesystem::path& weights,
                                     const CaffeOptions& options = {});

/// Parses a network from memory; `weights` may be empty for a network without any. With an `owner`, which keeps the
/// weights alive, the model's weights are parts of them; without one they are copied.
[[nodiscard]] onnx::Model parse_caffe(const std::string& network, std::string_view weights,
                                      const std::string& network_name, const std::string& weights_name,
                                      const CaffeOptions& options = {}, std::shared_ptr<const void> owner = nullptr);

using report::CaffeField;
using report::CaffeLayer;

/// Returns all types of layers that Graft reads, in the order of their names.
[[nodiscard]] std::vector<CaffeLayer> caffe_layers();

}  // namespace graft
