// Recognizes files that users mistake for frozen graphs, and describes how to convert each kind to a file that Graft
// reads.
#include "import/other_formats.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <vector>

#include "import/cut_network.hpp"
#include "onnx/mapped_file.hpp"

namespace graft {
namespace {

constexpr std::string_view freeze_saved_model =
    "freeze it in TensorFlow: f = tf.saved_model.load(FOLDER).signatures['serving_default'], then "
    "convert_variables_to_constants_v2(f) of tensorflow.python.framework.convert_to_constants, and write "
    ".graph.as_graph_def().SerializeToString() to a .pb file";
constexpr std::string_view freeze_keras =
    "load it in Keras, create a function f = tf.function(model).get_concrete_function(tf.TensorSpec(SHAPE)), then "
    "convert_variables_to_constants_v2(f) of tensorflow.python.framework.convert_to_constants, and write "
    ".graph.as_graph_def().SerializeToString() to a .pb file";
constexpr std::string_view freeze_checkpoint =
    "in TensorFlow 1, restore the checkpoint into the network's session, call "
    "tf.compat.v1.graph_util.convert_variables_to_constants(session, graph_def, names of the outputs), and write "
    ".SerializeToString() of the result to a .pb file";

struct Kind {
  std::string_view end;  ///< The suffix of the file's name.
  std::string_view what;
  std::string_view remedy;
};
constexpr std::array kinds = {
    Kind{".h5", "a Keras model or weights in HDF5", freeze_keras},
    Kind{".hdf5", "a Keras model or weights in HDF5", freeze_keras},
    Kind{".keras", "a Keras model", freeze_keras},
    Kind{".ckpt", "a TensorFlow checkpoint, which contains weights without the network", freeze_checkpoint},
    Kind{".index", "part of a TensorFlow checkpoint, which contains weights without the network", freeze_checkpoint},
    Kind{".meta", "the graph of a TensorFlow 1 checkpoint, without weights", freeze_checkpoint},
    Kind{".tflite", "a TensorFlow Lite model",
         "Graft does not read this format; pass the TensorFlow network that the file was created from, as a frozen "
         "graph (.pb)"},
    Kind{".pt", "a PyTorch model", "export it with torch.onnx.export, and pass the .onnx file"},
    Kind{".pth", "a PyTorch model", "export it with torch.onnx.export, and pass the .onnx file"},
    Kind{".engine", "a TensorRT engine",
         "an engine cannot be converted; pass the network that the engine was built from, such as its .onnx file"},
    Kind{".plan", "a TensorRT engine",
         "an engine cannot be converted; pass the network that the engine was built from, such as its .onnx file"},
};

/// Returns the names of the first few files in a folder that Graft can read, separated by commas; empty if there are
/// none.
std::string models_in(const std::filesystem::path& folder) {
  constexpr std::size_t few = 8;
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string end = entry.path().extension();
    if (end == ".onnx" || end == ".pb" || end == ".pbtxt" || end == ".prototxt") {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < few; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > few ? text + ", ..." : text;
}

/// Returns advice for a file whose first bytes show that its suffix `end` is wrong; empty for any other file.
std::string_view wrong_name(const std::string& bytes, std::string_view end) {
  if (bytes.starts_with("version https://git-lfs"))
    return "this is a Git LFS pointer without the content of the model; fetch the model with git lfs pull";
  const bool is_text = std::none_of(bytes.begin(), bytes.end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x09U || c == '\x12'; });
  if (end == ".prototxt" && !is_text) {
    return "the file is binary, but a .prototxt file is text; pass the network (.prototxt) first and its weights "
           "(.caffemodel) second";
  }
  // Field 1 is a message in a GraphDef, but a number in an ONNX model.
  if ((end == ".onnx" || end.empty()) && bytes.starts_with('\x0a') && !is_text) {
    return "this is not an ONNX model; if it is a frozen TensorFlow graph, rename it to .pb";
  }
  if (end == ".pb" && bytes.starts_with('\x08')) {
    return "this is not a frozen TensorFlow graph; if it is an ONNX model, rename it to .onnx";
  }
  if (end != ".prototxt" && end != ".pbtxt" && is_text && bytes.find("layer") != std::string::npos) {
    return "if this is the text of a Caffe network, rename the file to .prototxt, and pass the .caffemodel as the "
           "second file";
  }
  return {};
}

std::string sentence(std::string_view what, std::string_view remedy) {
  return std::string("this is ") + std::string(what) + "; " + std::string(remedy);
}

}  // namespace

std::optional<std::string> explain_other_format(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    if (std::filesystem::exists(path / "saved_model.pb", error))
      return sentence("a SavedModel folder", freeze_saved_model);
    const std::string inside = models_in(path);
    return "this is a folder; pass a .onnx, .pb, .pbtxt or .prototxt file" +
           (inside.empty() ? "" : ". The folder contains " + inside);
  }
  // The JSON of a cut network may contain any node names. Faults of its halves are reported when they are read.
  if (is_cut_network(path)) return std::nullopt;
  const std::string name = path.filename().string();
  for (const Kind& kind : kinds) {
    if (name.ends_with(kind.end)) return sentence(kind.what, kind.remedy);
  }
  if (name.find(".data-0") != std::string::npos)
    return sentence("part of a TensorFlow checkpoint, which contains weights without the network", freeze_checkpoint);
  constexpr std::size_t enough = 512;
  const std::string bytes = onnx::beginning_of_file(path, enough);
  if (bytes.starts_with("\x89HDF")) return sentence("a Keras model or weights in HDF5", freeze_keras);
  if (bytes.size() > 8 && bytes.substr(4, 4) == "TFL3") return sentence("a TensorFlow Lite model", kinds[6].remedy);
  if (bytes.starts_with("PK\x03\x04")) {
    return "this is a zip archive: a Keras model (.keras) or a PyTorch model (.pt). For Keras: " +
           std::string(freeze_keras) + ". For PyTorch: export it with torch.onnx.export";
  }
  // Field 1 is a number in a SavedModel, but not in a GraphDef or in an ONNX model that begins like this.
  const bool is_saved_model = bytes.size() > 2 && bytes[0] == '\x08' && bytes[1] == '\x01' && bytes[2] == '\x12';
  if (is_saved_model && path.extension() == ".pb")
    return sentence("a SavedModel, whose weights are in its folder `variables`", freeze_saved_model);
  const std::string_view meant = wrong_name(bytes, path.extension().string());
  return meant.empty() ? std::nullopt : std::optional<std::string>(meant);
}

}  // namespace graft
