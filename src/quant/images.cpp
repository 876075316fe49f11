// libpng and TurboJPEG decode; resizing and normalizing are a few loops.
#include "quant/images.hpp"

#include <fmt/format.h>
#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>

#include "graft/error.hpp"
#include "graph/mapped_file.hpp"

namespace graft {
namespace {

constexpr std::int64_t colors = 3;
/// A file of a few bytes may claim any size, and some kilobytes of PNG may hold any number of equal pixels.
constexpr std::int64_t longest_side = 16384;
constexpr std::int64_t most_pixels = std::int64_t{64} << 20U;
constexpr std::size_t most_bytes = std::size_t{256} << 20U;

void check_size(std::string_view name, std::int64_t height, std::int64_t width) {
  if (height < 1 || width < 1 || height > longest_side || width > longest_side || height > most_pixels / width) {
    throw Error(fmt::format("{}: the image has {} x {} pixels; allowed are sides up to {}, and {} pixels", name, width,
                            height, longest_side, most_pixels));
  }
}

Image image_of(std::string_view name, std::int64_t height, std::int64_t width) {
  check_size(name, height, width);
  return {height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * colors))};
}

Image decode_png(std::string_view bytes, std::string_view name) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  const auto fail = [&] {
    const std::string message(static_cast<const char*>(png.message));
    png_image_free(&png);
    throw Error(fmt::format("{}: this PNG cannot be read: {}", name, message));
  };
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0) fail();
  png.format = PNG_FORMAT_RGB;
  Image image;
  try {
    image = image_of(name, png.height, png.width);
  } catch (...) {
    png_image_free(&png);
    throw;
  }
  const png_color black{0, 0, 0};
  if (png_image_finish_read(&png, &black, image.pixels.data(), 0, nullptr) == 0) fail();
  return image;
}

Image decode_jpeg(std::string_view bytes, std::string_view name) {
  const std::unique_ptr<void, int (*)(tjhandle)> decoder(tjInitDecompress(), tjDestroy);
  const auto check = [&](int result) {
    if (result == 0) return;
    throw Error(fmt::format("{}: this JPEG cannot be read: {}", name, tjGetErrorStr2(decoder.get())));
  };
  if (decoder == nullptr) throw Error(Error::Kind::internal, "TurboJPEG does not start");
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0;
  int height = 0;
  int sampling = 0;
  int color_space = 0;
  check(tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &sampling, &color_space));
  if (color_space == TJCS_CMYK || color_space == TJCS_YCCK) {
    throw Error(fmt::format("{}: this JPEG is in CMYK, for print; save it in RGB", name));
  }
  Image image = image_of(name, height, width);
  check(tjDecompress2(decoder.get(), data, bytes.size(), image.pixels.data(), width, 0, height, TJPF_RGB,
                      TJFLAG_LIMITSCANS));
  return image;
}

/// What one pixel of the result takes from a row.
struct Tap {
  std::int64_t first = 0;
  std::vector<float> weights;
};

/// A triangle over the pixels that become one, as Pillow's bilinear filter.
std::vector<Tap> taps_of(std::int64_t from, std::int64_t to) {
  constexpr double middle = 0.5;
  const double ratio = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(1.0, ratio);
  std::vector<Tap> taps(static_cast<std::size_t>(to));
  for (std::int64_t i = 0; i < to; ++i) {
    Tap& tap = taps[static_cast<std::size_t>(i)];
    const double center = (static_cast<double>(i) + middle) * ratio;
    tap.first = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - reach + middle));
    const std::int64_t end = std::min(from, static_cast<std::int64_t>(center + reach + middle));
    double sum = 0;
    for (std::int64_t k = tap.first; k < end; ++k) {
      const double weight = std::max(0.0, 1 - std::abs(static_cast<double>(k) + middle - center) / reach);
      tap.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : tap.weights) weight = static_cast<float>(weight / sum);
  }
  return taps;
}

/// Rows of pixels in f32.
struct Picture {
  ImageRecipe::Size size;
  std::vector<float> numbers;
  [[nodiscard]] const float* row(std::int64_t y) const { return numbers.data() + y * size.width * colors; }
  [[nodiscard]] float* row(std::int64_t y) { return numbers.data() + y * size.width * colors; }
};

Picture picture_of(const ImageRecipe::Size& size) {
  return {size, std::vector<float>(static_cast<std::size_t>(size.height * size.width * colors))};
}

Picture resized(const Image& from, const ImageRecipe::Size& size) {
  if (from.height == size.height && from.width == size.width) return {size, {from.pixels.begin(), from.pixels.end()}};
  Picture narrow = picture_of({from.height, size.width});
  const std::vector<Tap> columns = taps_of(from.width, size.width);
  for (std::int64_t y = 0; y < from.height; ++y) {
    float* to = narrow.row(y);
    for (const Tap& tap : columns) {
      std::array<float, colors> sum{};
      const std::uint8_t* pixel = from.pixels.data() + (y * from.width + tap.first) * colors;
      for (const float weight : tap.weights) {
        for (std::size_t c = 0; c < colors; ++c) sum[c] += weight * static_cast<float>(pixel[c]);
        pixel += colors;
      }
      to = std::copy(sum.begin(), sum.end(), to);
    }
  }
  Picture result = picture_of(size);
  const std::vector<Tap> rows = taps_of(from.height, size.height);
  for (std::int64_t y = 0; y < size.height; ++y) {
    const Tap& tap = rows[static_cast<std::size_t>(y)];
    float* to = result.row(y);
    for (std::size_t k = 0; k < tap.weights.size(); ++k) {
      const float* row = narrow.row(tap.first + static_cast<std::int64_t>(k));
      for (std::int64_t i = 0; i < size.width * colors; ++i) to[i] += tap.weights[k] * row[i];
    }
  }
  return result;
}

ImageRecipe::Size size_after_resizing(const Image& image, const ImageRecipe& recipe) {
  if (recipe.resize) return *recipe.resize;
  if (!recipe.shorter_side) return {image.height, image.width};
  const std::int64_t shorter = std::min(image.height, image.width);
  const auto scaled = [&](std::int64_t side) {
    return std::max<std::int64_t>(1, side * *recipe.shorter_side / shorter);
  };
  return {scaled(image.height), scaled(image.width)};
}

float channel(const float* pixel, ImageRecipe::Channels channels, std::size_t c) {
  // ITU-R 601, as OpenCV and Pillow weigh colors.
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
  return parse_image(MappedFile::open(path, most_bytes)->view(), path.string());
}

Image parse_image(std::string_view bytes, std::string_view name) {
  constexpr std::string_view png = "\x89PNG\r\n\x1a\n";
  constexpr std::string_view jpeg = "\xff\xd8";
  if (bytes.substr(0, png.size()) == png) return decode_png(bytes, name);
  if (bytes.substr(0, jpeg.size()) == jpeg) return decode_jpeg(bytes, name);
  throw Error(fmt::format("{}: this is neither a JPEG nor a PNG", name));
}

TensorData prepare_image(const Image& image, const ImageRecipe& recipe, std::string_view name) {
  const ImageRecipe::Size size = size_after_resizing(image, recipe);
  check_size(name, size.height, size.width);
  const Picture picture = resized(image, size);
  const ImageRecipe::Size crop = recipe.crop.value_or(size);
  if (crop.height > size.height || crop.width > size.width) {
    throw Error(fmt::format("{}: {} x {} pixels cannot be cropped to {} x {}\nResize it first, in the recipe", name,
                            size.width, size.height, crop.width, crop.height));
  }
  const std::int64_t top = (size.height - crop.height) / 2;
  const std::int64_t left = (size.width - crop.width) / 2;
  const std::size_t channels = recipe.channels == ImageRecipe::Channels::gray ? 1 : colors;
  const auto plane = static_cast<std::size_t>(crop.height * crop.width);
  std::string bytes(plane * channels * sizeof(float), '\0');
  auto* numbers = reinterpret_cast<float*>(bytes.data());
  for (std::size_t c = 0; c < channels; ++c) {
    const auto mean = static_cast<float>(recipe.mean[std::min(c, recipe.mean.size() - 1)]);
    const auto scale = static_cast<float>(recipe.scale[std::min(c, recipe.scale.size() - 1)]);
    float* to = recipe.channels_last ? numbers + c : numbers + c * plane;
    const std::size_t stride = recipe.channels_last ? channels : 1;
    for (std::int64_t y = 0; y < crop.height; ++y) {
      const float* pixel = picture.row(top + y) + left * colors;
      for (std::int64_t x = 0; x < crop.width; ++x, pixel += colors, to += stride) {
        *to = (channel(pixel, recipe.channels, c) - mean) * scale;
      }
    }
  }
  const auto depth = static_cast<std::int64_t>(channels);
  TensorData tensor;
  tensor.type = ElementType::f32;
  tensor.dims = recipe.channels_last ? std::vector{std::int64_t{1}, crop.height, crop.width, depth}
                                     : std::vector{std::int64_t{1}, depth, crop.height, crop.width};
  tensor.bytes = Bytes(std::move(bytes));
  return tensor;
}

}  // namespace graft
