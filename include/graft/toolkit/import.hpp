// Reads networks in any format that Graft supports.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graft/toolkit/export.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

/// Sizes by the name of an input; -1 for a dimension that stays dynamic.
using Shapes = std::map<std::string, std::vector<std::int64_t>>;

struct ImportOptions {
  std::filesystem::path weights = {};  ///< The .caffemodel of a Caffe network.
  /// Shapes of inputs, in place of those in the file. A TensorFlow graph or a Caffe network that declares no shape may
  /// need them.
  Shapes shapes = {};
  /// Tensors of a TensorFlow graph or a Caffe network that become the outputs. If empty, the outputs are all
  /// tensors that no node reads.
  std::vector<std::string> outputs = {};
  /// Progress and cancellation. The token is checked before each node of a TensorFlow graph or a Caffe network, and
  /// between the steps of reading an ONNX file.
  Watch watch = {};
};

enum class Format : std::uint8_t { onnx, tensorflow, caffe };

/// Returns the format that `load` assumes for a file, according to the extension of its name.
[[nodiscard]] GRAFT_API Format format_of(const std::filesystem::path& file);

/// Reads a network: a frozen TensorFlow graph (.pb, .pbtxt), a Caffe network (.prototxt, with its weights in the
/// options), any other file as ONNX. The names of tensors and the layout of the inputs are those of the file. Throws
/// Error naming file, node and attribute for a malformed file and for an operator that the reader does not support;
/// Error for an input in `shapes` that the network does not have; Cancelled.
[[nodiscard]] GRAFT_API Model load(const std::filesystem::path& file, const ImportOptions& options = {});

/// Reads an ONNX model with all weights inside from memory, which may be freed afterwards. Messages call the model
/// `name`. Throws as `load` does.
[[nodiscard]] GRAFT_API Model parse(std::string_view onnx, const std::string& name = "model",
                                    const Shapes& shapes = {});

}  // namespace graft::toolkit
