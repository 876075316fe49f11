// Reading networks of any format that Graft knows.
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

/// By input: its sizes, -1 for a dimension that stays dynamic.
using Shapes = std::map<std::string, std::vector<std::int64_t>>;

struct ImportOptions {
  std::filesystem::path weights = {};  ///< The .caffemodel of a Caffe network.
  /// In place of the file's. A TensorFlow graph or a Caffe network that declares no shape may need them.
  Shapes shapes = {};
  /// Tensors of a TensorFlow graph or a Caffe network that become the outputs. Empty: all that no node reads.
  std::vector<std::string> outputs = {};
  /// The token is looked at before each node of a TensorFlow graph or a Caffe network, and between the steps of the
  /// others.
  Watch watch = {};
};

enum class Format : std::uint8_t { onnx, tensorflow, caffe };

/// What `load` takes a file for, by the end of its name.
[[nodiscard]] GRAFT_API Format format_of(const std::filesystem::path& file);

/// Reads a network: a frozen TensorFlow graph (.pb, .pbtxt), a Caffe network (.prototxt, with its weights in the
/// options), anything else as ONNX. Names of tensors stay as the file has them, and so does the layout of the inputs.
/// Throws Error naming file, node and attribute for what is malformed, and for an operator that the reader does not
/// know; Error for an input in `shapes` that the network does not have; Cancelled.
[[nodiscard]] GRAFT_API Model load(const std::filesystem::path& file, const ImportOptions& options = {});

/// Reads an ONNX model from memory, of which nothing is kept; all weights are inside. `name` is for messages. Throws as
/// the function above.
[[nodiscard]] GRAFT_API Model parse(std::string_view onnx, const std::string& name = "model",
                                    const Shapes& shapes = {});

}  // namespace graft::toolkit
