// Reading Caffe's networks (.prototxt and .caffemodel), without Caffe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "import/origin.hpp"
#include "onnx/model.hpp"

namespace graft {

struct CaffeOptions {
  std::vector<std::string> outputs;  ///< Blobs to keep as outputs; empty for all that no layer reads.
  std::map<std::string, Shape, std::less<>> input_shapes;  ///< In place of the file's, by the name of the blob.
  Origin* origin = nullptr;                                ///< Filled in where it is given.
  /// As in ImportOptions of read_model.hpp.
  std::function<void(std::size_t done, std::size_t total)> progress = {};
};

/// Reads the network as Caffe would run it for testing: layers of training alone, losses and accuracies are left out.
/// An ONNX model of operator set 17; blobs keep their names. Where layers work in place, the blob's name is that of the
/// last one, and what went before is called after its layer. Both files may be of the old format (V1). Throws Error
/// naming file, layer and parameter for anything malformed; for layers that Graft does not know, and for layers whose
/// weights are missing, all of them at once.
[[nodiscard]] onnx::Model read_caffe(const std::filesystem::path& network, const std::filesystem::path& weights,
                                     const CaffeOptions& options = {});

/// The same from memory; `weights` may be empty for a network without any. With an `owner`, which keeps them alive, the
/// model's weights are parts of them; without one they are copied.
[[nodiscard]] onnx::Model parse_caffe(const std::string& network, std::string_view weights,
                                      const std::string& network_name, const std::string& weights_name,
                                      const CaffeOptions& options = {}, std::shared_ptr<const void> owner = nullptr);

/// A field of a layer's parameters.
struct CaffeField {
  std::string name;
  std::string default_text;  ///< Empty where it has none or may be repeated.
};

/// A type of layer that is read, for the documentation.
struct CaffeLayer {
  std::string_view type;
  std::string_view parameters;  ///< The message that holds the fields; empty where there is none.
  std::vector<CaffeField> fields;
  std::size_t blobs = 0;  ///< Trained blobs that it cannot do without.
  std::string_view doc;   ///< What is special about how it is read, and what of it is refused.
};

/// In the order of their names.
[[nodiscard]] std::vector<CaffeLayer> caffe_layers();

}  // namespace graft
