// Which reader a file goes to.
#include "import/read_model.hpp"

#include <fmt/format.h>

#include "graft/error.hpp"
#include "import/caffe/import.hpp"
#include "import/cut_network.hpp"
#include "import/other_formats.hpp"
#include "import/tensorflow/import.hpp"
#include "onnx/onnx_io.hpp"

namespace graft {

bool is_imported(const std::filesystem::path& path) {
  const std::filesystem::path end = path.extension();
  return end == ".pb" || end == ".pbtxt" || end == ".prototxt";
}

onnx::Model read_model(const std::filesystem::path& path, const std::filesystem::path& weights,
                       const ImportOptions& options) {
  if (const auto other = explain_other_format(path)) throw Error(fmt::format("{}: {}", path.string(), *other));
  const std::filesystem::path end = path.extension();
  if (end == ".prototxt") {
    return read_caffe(path, weights,
                      {.outputs = options.outputs, .input_shapes = options.input_shapes, .origin = options.origin});
  }
  if (end == ".caffemodel") {
    throw Error(
        fmt::format("{}: these are weights; give the network (.prototxt) first, then this file", path.string()));
  }
  if (!weights.empty()) {
    throw Error(fmt::format("{}: a second file, {}; only a Caffe network (.prototxt) has its weights apart",
                            path.string(), weights.string()));
  }
  if (end == ".pb" || end == ".pbtxt") {
    return read_tensorflow(
        path, {.outputs = options.outputs, .input_shapes = options.input_shapes, .origin = options.origin});
  }
  if (!options.outputs.empty()) {
    throw Error(fmt::format("{}: outputs can be chosen of TensorFlow and Caffe networks; an ONNX file names its own",
                            path.string()));
  }
  if (is_cut_network(path)) return join(read_cut_network(path));
  return onnx::read_onnx(path);
}

}  // namespace graft
