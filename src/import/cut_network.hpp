// Reads a network that `graft convert --cut` has cut in two, from the file that names both halves.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft {

struct CutNetwork {
  onnx::Model tensorrt;
  onnx::Model host;
  bool tensorrt_is_first = true;
  std::vector<std::string> outputs = {};  ///< The outputs of the whole network, in their original order.

  [[nodiscard]] const onnx::Model& first() const { return tensorrt_is_first ? tensorrt : host; }
  [[nodiscard]] const onnx::Model& second() const { return tensorrt_is_first ? host : tensorrt; }
};

/// Returns whether the name of a file ends in ".cut.json".
[[nodiscard]] bool is_cut_network(const std::filesystem::path& path);

/// Reads the file and the two ONNX models that it names, one for TensorRT and one for the host, which must be in the
/// same folder. Throws Error naming the file and the key for malformed content, and for an output that neither model
/// has.
[[nodiscard]] CutNetwork read_cut_network(const std::filesystem::path& path);

/// Joins the model for TensorRT and the model for the host into the whole network.
[[nodiscard]] onnx::Model join(const CutNetwork& network);

}  // namespace graft
