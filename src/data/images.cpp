// Decodes images with libpng and TurboJPEG, resizes and normalizes them. Sizes are checked before pixels are read.
#include "data/images.hpp"

#include <fmt/format.h>
#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>

#include "graft/error.hpp"
#include "onnx/mapped_file.hpp"

namespace graft::data {
namespace {

constexpr std::int64_t colors = 3;
/// The limits on the size of an image. They are needed because a file of a few bytes may declare any size, and a PNG of
/// some kilobytes may contain any number of equal pixels.
constexpr std::int64_t longest_side = 16384;
constexpr std::int64_t most_pixels = std::int64_t{64} << 20U;
constexpr std::size_t most_bytes = std::size_t{256} << 20U;
/// The largest number of bytes for the file, its pixels and the prepared tensor together.
constexpr std::int64_t most_image_memory = std::int64_t{208} << 20U;

void check_size(std::string_view name, std::int64_t height, std::int64_t width) {
  if (height < 1 || width < 1 || height > longest_side || width > longest_side || height > most_pixels / width) {
    throw Error(
        fmt::format("{}: the image has {} x {} pixels; each side must have 1 to {} pixels, and the image may have at "
                    "most {} pixels",
                    name, width, height, longest_side, most_pixels));
  }
}

/// Returns the header of an image whose decoder needs `more` bytes for each pixel in addition to the colors. Throws
/// Error for sizes that are not allowed.
ImageHeader header_of(std::string_view name, std::int64_t height, std::int64_t width, std::int64_t more) {
  check_size(name, height, width);
  return {height, width, height * width * (colors + more)};
}

void check_memory(std::string_view name, const ImageHeader& image, std::int64_t more) {
  if (image.bytes + more <= most_image_memory) return;
  constexpr std::int64_t of_mebibyte = std::int64_t{1} << 20U;
  throw Error(fmt::format(
      "{}: the image of {} x {} pixels needs {} MiB while it is read and prepared; the limit is {} MiB\nSave a smaller "
      "image, and save a JPEG without progressive scans",
      name, image.width, image.height, (image.bytes + more) / of_mebibyte, most_image_memory / of_mebibyte));
}

class Png {
 public:
  Png(std::string_view bytes, std::string_view name) : name_(name) {
    png_.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_memory(&png_, bytes.data(), bytes.size()) == 0) fail();
    png_.format = PNG_FORMAT_RGB;
  }
  ~Png() { png_image_free(&png_); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;
  Png(Png&&) = delete;
  Png& operator=(Png&&) = delete;

  [[nodiscard]] ImageHeader header() const { return header_of(name_, png_.height, png_.width, 0); }

  void decode(Image& image) {
    const png_color black{0, 0, 0};
    if (png_image_finish_read(&png_, &black, image.pixels.data(), 0, nullptr) == 0) fail();
  }

 private:
  [[noreturn]] void fail() {
    const std::string message(static_cast<const char*>(png_.message));
    png_image_free(&png_);
    throw Error(fmt::format("{}: this PNG cannot be read: {}", name_, message));
  }

  std::string_view name_;
  png_image png_{};
};

/// Returns whether a single scan contains all colors, block by block. Otherwise the decoder stores the coefficients of
/// the whole image.
bool is_of_one_scan(std::string_view jpeg) {
  const auto at = [&](std::size_t i) -> unsigned { return i < jpeg.size() ? static_cast<unsigned char>(jpeg[i]) : 0U; };
  constexpr unsigned begin = 0xFF;
  constexpr unsigned baseline = 0xC0;
  constexpr unsigned extended = 0xC1;
  constexpr unsigned last_frame = 0xCF;
  constexpr unsigned huffman_tables = 0xC4;
  constexpr unsigned arithmetic_tables = 0xCC;
  constexpr unsigned scan = 0xDA;
  constexpr std::size_t of_marker = 2;
  constexpr std::size_t colors_of_scan = 4;
  constexpr std::size_t colors_of_frame = 9;
  unsigned all_colors = 0;
  std::size_t i = of_marker;
  while (at(i) == begin) {
    const unsigned marker = at(i + 1);
    if (marker == scan) return all_colors != 0 && at(i + colors_of_scan) == all_colors;
    if (marker == baseline || marker == extended) {
      all_colors = at(i + colors_of_frame);
    } else if (marker > extended && marker <= last_frame && marker != huffman_tables && marker != arithmetic_tables) {
      return false;
    }
    const std::size_t length = at(i + 2) << 8U | at(i + 3);
    if (marker < baseline || length < 2) return false;
    i += of_marker + length;
  }
  return false;
}

class Jpeg {
 public:
  Jpeg(std::string_view bytes, std::string_view name)
      : bytes_(bytes), name_(name), decoder_(tjInitDecompress(), tjDestroy) {
    if (decoder_ == nullptr) throw Error(Error::Kind::internal, "TurboJPEG cannot be initialized");
    int color_space = 0;
    check(tjDecompressHeader3(decoder_.get(), data(), bytes_.size(), &width_, &height_, &sampling_, &color_space));
    if (color_space == TJCS_CMYK || color_space == TJCS_YCCK) {
      throw Error(
          fmt::format("{}: the colors of this JPEG are CMYK, which is for print; save the image in RGB", name_));
    }
  }

  [[nodiscard]] ImageHeader header() const {
    constexpr std::int64_t most = 6;  // Two bytes for each color.
    const std::int64_t of_pixel = sampling_ == TJSAMP_GRAY ? most / 3 : sampling_ == TJSAMP_420 ? most / 2 : most;
    return header_of(name_, height_, width_, is_of_one_scan(bytes_) ? 0 : of_pixel);
  }

  void decode(Image& image) {
    check(tjDecompress2(decoder_.get(), data(), bytes_.size(), image.pixels.data(), width_, 0, height_, TJPF_RGB,
                        TJFLAG_LIMITSCANS));
  }

 private:
  [[nodiscard]] const unsigned char* data() const { return reinterpret_cast<const unsigned char*>(bytes_.data()); }
  void check(int result) const {
    if (result == 0) return;
    throw Error(fmt::format("{}: this JPEG cannot be read: {}", name_, tjGetErrorStr2(decoder_.get())));
  }

  std::string_view bytes_;
  std::string_view name_;
  std::unique_ptr<void, int (*)(tjhandle)> decoder_;
  int width_ = 0;
  int height_ = 0;
  int sampling_ = 0;
};

/// Calls `use` with a decoder for the image. Throws Error if the image is neither a JPEG nor a PNG.
template <class Use>
auto with_decoder(std::string_view bytes, std::string_view name, const Use& use) {
  constexpr std::string_view png = "\x89PNG\r\n\x1a\n";
  constexpr std::string_view jpeg = "\xff\xd8";
  if (bytes.substr(0, png.size()) == png) {
    Png image(bytes, name);
    return use(image);
  }
  if (bytes.substr(0, jpeg.size()) == jpeg) {
    Jpeg image(bytes, name);
    return use(image);
  }
  throw Error(fmt::format("{}: this is neither a JPEG nor a PNG", name));
}

/// The weights of the source pixels that contribute to one pixel of the result.
struct Tap {
  std::int64_t first = 0;
  std::vector<float> weights;
};

/// Returns the weights with which `count` pixels of the result, starting at `begin`, are computed where a side of
/// `from` pixels is resized to `to` pixels. Uses a triangle filter, as Pillow's bilinear filter does.
std::vector<Tap> taps_of(std::int64_t from, std::int64_t to, std::int64_t begin, std::int64_t count) {
  constexpr double middle = 0.5;
  const double ratio = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(1.0, ratio);
  std::vector<Tap> taps(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    Tap& tap = taps[static_cast<std::size_t>(i)];
    const double center = (static_cast<double>(begin + i) + middle) * ratio;
    tap.first = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - reach + middle));
    const std::int64_t end = std::min(from, static_cast<std::int64_t>(center + reach + middle));
    double sum = 0;
    for (std::int64_t k = tap.first; k < end; ++k) {
      const double weight = std::max(0.0, 1 - std::abs(static_cast<double>(k) + middle - center) / reach);
      tap.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    while (tap.weights.size() > 1 && tap.weights.back() == 0) tap.weights.pop_back();
    for (float& weight : tap.weights) weight = static_cast<float>(weight / sum);
  }
  return taps;
}

ImageRecipe::Size size_after_resizing(const ImageHeader& image, const ImageRecipe& recipe) {
  if (recipe.resize) return *recipe.resize;
  if (!recipe.shorter_side) return {image.height, image.width};
  const std::int64_t shorter = std::min(image.height, image.width);
  const auto scaled = [&](std::int64_t side) {
    return std::max<std::int64_t>(1, side * *recipe.shorter_side / shorter);
  };
  return {scaled(image.height), scaled(image.width)};
}

/// The part of the resized image that is kept after cropping.
struct Part {
  ImageRecipe::Size resized;
  ImageRecipe::Size size;
  std::int64_t top = 0;
  std::int64_t left = 0;
};

Part part_of(const ImageHeader& image, const ImageRecipe& recipe, std::string_view name) {
  const ImageRecipe::Size resized = size_after_resizing(image, recipe);
  check_size(name, resized.height, resized.width);
  const ImageRecipe::Size size = recipe.crop.value_or(resized);
  if (size.height > resized.height || size.width > resized.width) {
    throw Error(fmt::format(
        "{}: the image of {} x {} pixels cannot be cropped to {} x {}\nSet a smaller crop in the recipe, or "
        "a larger resize",
        name, resized.width, resized.height, size.width, size.height));
  }
  return {resized, size, (resized.height - size.height) / 2, (resized.width - size.width) / 2};
}

std::int64_t channels_of(const ImageRecipe& recipe) {
  return recipe.channels == ImageRecipe::Channels::gray ? 1 : colors;
}

/// Returns the tensor of the result with type and dimensions, but without elements.
onnx::TensorData tensor_for(const Part& part, const ImageRecipe& recipe) {
  const auto& [height, width] = part.size;
  const std::int64_t channels = channels_of(recipe);
  onnx::TensorData tensor;
  tensor.type = onnx::ElementType::f32;
  tensor.dims = recipe.channels_last ? std::vector{std::int64_t{1}, height, width, channels}
                                     : std::vector{std::int64_t{1}, channels, height, width};
  return tensor;
}

std::int64_t bytes_of(const onnx::TensorData& tensor) {
  return tensor.element_count() * static_cast<std::int64_t>(sizeof(float));
}

float channel(const float* pixel, ImageRecipe::Channels channels, std::size_t c) {
  // The weights of the colors in ITU-R 601, which OpenCV and Pillow use.
  constexpr std::array<float, colors> gray{0.299F, 0.587F, 0.114F};
  switch (channels) {
    case ImageRecipe::Channels::rgb: return pixel[c];
    case ImageRecipe::Channels::bgr: return pixel[colors - 1 - c];
    case ImageRecipe::Channels::gray: return gray[0] * pixel[0] + gray[1] * pixel[1] + gray[2] * pixel[2];
  }
  return 0;
}

}  // namespace

bool is_image(const std::filesystem::path& path) {
  std::string end = path.extension().string();
  std::transform(end.begin(), end.end(), end.begin(), [](unsigned char c) { return std::tolower(c); });
  return end == ".jpg" || end == ".jpeg" || end == ".png";
}

Image read_image(const std::filesystem::path& path) {
  return parse_image(onnx::MappedFile::open(path, most_bytes)->view(), path.string());
}

Image parse_image(std::string_view bytes, std::string_view name) {
  return with_decoder(bytes, name, [&](auto& decoder) {
    const ImageHeader header = decoder.header();
    check_memory(name, header, std::ssize(bytes));
    Image image{header.height, header.width,
                std::vector<std::uint8_t>(static_cast<std::size_t>(header.height * header.width * colors))};
    decoder.decode(image);
    return image;
  });
}

ImageHeader parse_image_header(std::string_view bytes, std::string_view name) {
  return with_decoder(bytes, name, [](const auto& decoder) { return decoder.header(); });
}

onnx::TensorData load_image(const std::filesystem::path& path, const ImageRecipe& recipe,
                            const std::function<void(const onnx::TensorData&)>& check) {
  const std::string name = path.string();
  const auto file = onnx::MappedFile::open(path, most_bytes);
  const ImageHeader header = parse_image_header(file->view(), name);
  const onnx::TensorData result = tensor_for(part_of(header, recipe, name), recipe);
  check(result);
  check_memory(name, header, std::ssize(file->view()) + bytes_of(result));
  constexpr std::int64_t large = std::int64_t{16} << 20U;
  static std::mutex one_at_a_time;
  std::unique_lock lock(one_at_a_time, std::defer_lock);
  if (header.bytes > large) lock.lock();
  return prepare_image(parse_image(file->view(), name), recipe, name);
}

onnx::TensorData prepare_image(const Image& image, const ImageRecipe& recipe, std::string_view name) {
  const ImageHeader header = header_of(name, image.height, image.width, 0);
  const Part part = part_of(header, recipe, name);
  onnx::TensorData tensor = tensor_for(part, recipe);
  check_memory(name, header, bytes_of(tensor));
  const std::vector<Tap> rows = taps_of(image.height, part.resized.height, part.top, part.size.height);
  const std::vector<Tap> columns = taps_of(image.width, part.resized.width, part.left, part.size.width);
  const std::int64_t begin = columns.front().first;
  const std::int64_t end = columns.back().first + std::ssize(columns.back().weights);
  const auto channels = static_cast<std::size_t>(channels_of(recipe));
  std::array<float, colors> mean{};
  std::array<float, colors> scale{};
  for (std::size_t c = 0; c < channels; ++c) {
    mean[c] = static_cast<float>(recipe.mean[std::min(c, recipe.mean.size() - 1)]);
    scale[c] = static_cast<float>(recipe.scale[std::min(c, recipe.scale.size() - 1)]);
  }
  std::string bytes(static_cast<std::size_t>(bytes_of(tensor)), '\0');
  auto* to = reinterpret_cast<float*>(bytes.data());
  const std::size_t plane = recipe.channels_last ? 1 : static_cast<std::size_t>(part.size.height * part.size.width);
  const std::size_t step = recipe.channels_last ? channels : 1;
  // The source rows of one result row are summed first, so that only one row of the image is stored in f32.
  std::vector<float> sums(static_cast<std::size_t>((end - begin) * colors));
  for (const Tap& row : rows) {
    std::fill(sums.begin(), sums.end(), 0.0F);
    const std::uint8_t* pixels = image.pixels.data() + (row.first * image.width + begin) * colors;
    for (const float weight : row.weights) {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weight * static_cast<float>(pixels[i]);
      pixels += image.width * colors;
    }
    for (const Tap& column : columns) {
      std::array<float, colors> pixel{};
      const float* sum = sums.data() + (column.first - begin) * colors;
      for (const float weight : column.weights) {
        for (std::size_t c = 0; c < colors; ++c) pixel[c] += weight * sum[c];
        sum += colors;
      }
      for (std::size_t c = 0; c < channels; ++c)
        to[c * plane] = (channel(pixel.data(), recipe.channels, c) - mean[c]) * scale[c];
      to += step;
    }
  }
  tensor.bytes = onnx::Bytes(std::move(bytes));
  return tensor;
}

}  // namespace graft::data
