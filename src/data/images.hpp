// Prepares images for a network: reads, resizes, crops and normalizes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/tensor_data.hpp"

namespace graft::data {

/// Rows of pixels, each with red, green and blue.
struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;
};

/// The header of an image file, which is read before the pixels.
struct ImageHeader {
  std::int64_t height = 0;
  std::int64_t width = 0;
  /// The memory in bytes that decoding needs: three for each pixel, plus the coefficients if a JPEG needs all of them
  /// at once.
  std::int64_t bytes = 0;
};

/// Reads a JPEG or a PNG, recognized by its first bytes; transparent pixels are blended with black. Throws Error naming
/// the file and the reason.
[[nodiscard]] Image read_image(const std::filesystem::path& path);
[[nodiscard]] Image parse_image(std::string_view bytes, std::string_view name);
[[nodiscard]] ImageHeader parse_image_header(std::string_view bytes, std::string_view name);
/// Returns whether the name of a file ends in .jpg, .jpeg or .png.
[[nodiscard]] bool is_image(const std::filesystem::path& path);

/// Describes how a network's images are prepared: they are resized and cropped, and each pixel, from 0 to 255, is
/// normalized to (pixel - mean) * scale. In YAML:
///   resize: 256                       # the shorter side; or [height, width]
///   crop: [224, 224]                  # height, width, from the middle
///   channels: rgb                     # rgb, bgr, gray
///   mean: [123.675, 116.28, 103.53]   # one number, or one for each channel
///   scale: [0.01712, 0.01751, 0.01743]   # or fractions: 1/255
///   layout: nchw                      # nchw, nhwc
///   input: image                      # of the model, where it has several
struct ImageRecipe {
  enum class Channels : std::uint8_t { rgb, bgr, gray };
  struct Size {
    std::int64_t height = 0;
    std::int64_t width = 0;
    friend bool operator==(const Size&, const Size&) = default;
  };
  std::optional<std::int64_t> shorter_side;
  std::optional<Size> resize;
  std::optional<Size> crop;
  Channels channels = Channels::rgb;
  std::vector<double> mean{0};
  std::vector<double> scale{1};
  bool has_scale = false;  ///< Whether the YAML has the key `scale`.
  bool channels_last = false;
  std::string input;
  std::string text;  ///< The YAML as it was written.
};

/// Reads a recipe. Throws Error naming file, line and column for text that is not YAML, unknown keys, and values that
/// are not allowed.
[[nodiscard]] ImageRecipe read_image_recipe(const std::filesystem::path& path);
[[nodiscard]] ImageRecipe parse_image_recipe(const std::string& text, const std::string& name);

/// Reads and prepares an image. Before the pixels are read, calls `check` with the type and the dimensions of the
/// result, as a tensor without elements; `check` may throw. Large images are decoded one at a time.
[[nodiscard]] onnx::TensorData load_image(const std::filesystem::path& path, const ImageRecipe& recipe,
                                          const std::function<void(const onnx::TensorData& empty)>& check);
/// Returns an image as an f32 tensor of shape 1 x C x H x W or 1 x H x W x C. Throws Error naming an image that is
/// smaller than the crop or needs too much memory.
[[nodiscard]] onnx::TensorData prepare_image(const Image& image, const ImageRecipe& recipe, std::string_view name);

}  // namespace graft::data
