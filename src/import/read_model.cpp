// Selects the reader of a file by the file's name.
#include "import/read_model.hpp"

#include <fmt/format.h>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "import/caffe/import.hpp"
#include "import/cut_network.hpp"
#include "import/other_formats.hpp"
#include "import/tensorflow/import.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/schema_ports.hpp"

namespace graft {
namespace {

/// Returns the model after check_ports(), which throws Error for a node whose number of inputs or outputs is wrong.
/// Readers of other formats may produce such a node; the reader of ONNX files calls check_ports() itself.
onnx::Model checked(onnx::Model model) {
  onnx::check_ports(model);
  return model;
}

}  // namespace

FileFormat format_of(const std::filesystem::path& path) {
  const std::filesystem::path end = path.extension();
  if (end == ".prototxt") return FileFormat::caffe;
  return end == ".pb" || end == ".pbtxt" ? FileFormat::tensorflow : FileFormat::onnx;
}

onnx::Model read_model(const std::filesystem::path& path, const std::filesystem::path& weights,
                       const ImportOptions& options) {
  if (const auto other = explain_other_format(path)) throw Error(fmt::format("{}: {}", path.string(), *other));
  const FileFormat format = format_of(path);
  if (format == FileFormat::caffe) {
    return checked(read_caffe(path, weights,
                              {.outputs = options.outputs,
                               .input_shapes = options.input_shapes,
                               .origin = options.origin,
                               .progress = options.progress}));
  }
  if (path.extension() == ".caffemodel") {
    throw Error(fmt::format("{}: this file contains weights; pass the network (.prototxt) first and this file second",
                            path.string()));
  }
  if (!weights.empty()) {
    throw Error(
        fmt::format("{}: the second file, {}, cannot be used, because only a Caffe network (.prototxt) has its weights "
                    "in a second file; pass the model alone",
                    path.string(), weights.string()));
  }
  if (format == FileFormat::tensorflow) {
    return checked(read_tensorflow(path, {.outputs = options.outputs,
                                          .input_shapes = options.input_shapes,
                                          .origin = options.origin,
                                          .progress = options.progress}));
  }
  if (!options.outputs.empty()) {
    throw Error(
        fmt::format("{0}: {1} selects the outputs of TensorFlow and Caffe networks; an ONNX file declares its outputs "
                    "itself, so leave out {1}",
                    path.string(), setting_name(Setting::kept_outputs)));
  }
  if (is_cut_network(path)) {
    onnx::Model whole = join(read_cut_network(path));
    whole.source = path.string();
    return whole;
  }
  return onnx::read_onnx(path);
}

}  // namespace graft
