// Reading a network of any format that Graft knows.
#pragma once

#include <filesystem>
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
};

/// Whether a file is read by an importer, by the end of its name: a TensorFlow graph or a Caffe network, whose inputs
/// may be given shapes while it is read. Anything else is ONNX.
[[nodiscard]] bool is_imported(const std::filesystem::path& path);

/// By the end of its name: .pb is a frozen TensorFlow graph, .prototxt a Caffe network, .cut.json a network in two
/// halves, which are joined, anything else ONNX. `weights`
/// is Caffe's second file, and empty for the others. Throws Error as the readers do, and for what a format does not
/// have.
[[nodiscard]] onnx::Model read_model(const std::filesystem::path& path, const std::filesystem::path& weights = {},
                                     const ImportOptions& options = {});

}  // namespace graft
