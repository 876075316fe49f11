// Reading a network of any format that Graft knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "import/origin.hpp"
#include "onnx/model.hpp"

namespace graft {

struct ImportOptions {
  /// Tensors to keep as outputs; of formats that do not say themselves what theirs are. Empty: what no node reads.
  std::vector<std::string> outputs;
  /// Shapes of inputs in place of the file's, for formats that need them while reading.
  std::map<std::string, Shape, std::less<>> input_shapes;
  Origin* origin = nullptr;  ///< Filled in where it is given.
  /// Told before each node of how many are converted; what it throws ends the reading. Not of ONNX, which is only read.
  std::function<void(std::size_t done, std::size_t total)> progress = {};
};

enum class FileFormat : std::uint8_t { onnx, tensorflow, caffe };

/// By the end of its name: .pb and .pbtxt are TensorFlow graphs, .prototxt is a Caffe network, anything else ONNX: a
/// model, or a network in two halves (.cut.json).
[[nodiscard]] FileFormat format_of(const std::filesystem::path& path);

/// Whether a file is read by an importer, whose inputs may be given shapes while it is read.
[[nodiscard]] inline bool is_imported(const std::filesystem::path& path) { return format_of(path) != FileFormat::onnx; }

/// The halves of a network in two are joined. `weights` is Caffe's second file, and empty for the others. Throws Error
/// as the readers do, and for what a format does not have.
[[nodiscard]] onnx::Model read_model(const std::filesystem::path& path, const std::filesystem::path& weights = {},
                                     const ImportOptions& options = {});

}  // namespace graft
