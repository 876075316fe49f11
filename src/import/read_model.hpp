// Reads a network of any format that Graft supports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graft/report/model.hpp"
#include "onnx/model.hpp"

namespace graft {

struct ImportOptions {
  /// Tensors to keep as outputs, for formats that do not declare outputs. An empty list keeps the tensors that no node
  /// reads.
  std::vector<std::string> outputs;
  /// Shapes of inputs that replace the shapes in the file, for formats whose readers need them.
  std::map<std::string, Shape, std::less<>> input_shapes;
  report::Origin* origin = nullptr;  ///< If not null, receives facts about the original network.
  /// Called before each node is converted, with the number of nodes that are done and of all nodes; may be empty. An
  /// exception from it stops the reading. Not called for ONNX, which needs no conversion.
  std::function<void(std::size_t done, std::size_t total)> progress = {};
};

enum class FileFormat : std::uint8_t { onnx, tensorflow, caffe };

/// Returns the format by the suffix of the file's name: .pb and .pbtxt are TensorFlow graphs, .prototxt is a Caffe
/// network, and all other names are ONNX. This includes .cut.json, which names two ONNX models that together form one
/// network.
[[nodiscard]] FileFormat format_of(const std::filesystem::path& path);

/// Returns whether the file is a TensorFlow graph or a Caffe network, for which the caller may set
/// ImportOptions::input_shapes.
[[nodiscard]] inline bool is_imported(const std::filesystem::path& path) { return format_of(path) != FileFormat::onnx; }

/// Reads a network. If the file is a .cut.json, joins the two models that it names. `weights` is the second file of a
/// Caffe network, and empty for other formats. Throws the Errors of the readers, and Error for options that the format
/// does not support.
[[nodiscard]] onnx::Model read_model(const std::filesystem::path& path, const std::filesystem::path& weights = {},
                                     const ImportOptions& options = {});

}  // namespace graft
