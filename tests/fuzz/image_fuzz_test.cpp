// Tests the reader with malformed images: damaged PNGs with valid checksums, and damaged JPEGs.
#include <png.h>
#include <turbojpeg.h>

#include <array>

#include "tests/fuzz/spoiled.hpp"

namespace graft::fuzz {
namespace {

constexpr int side = 24;

std::vector<std::uint8_t> pixels() {
  std::vector<std::uint8_t> result(std::size_t{3} * side * side);
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<std::uint8_t>(i * i / 7);
  return result;
}

std::vector<std::string> pngs() {
  std::vector<std::string> result;
  for (const png_uint_32 format : std::array<png_uint_32, 3>{PNG_FORMAT_RGB, PNG_FORMAT_GRAY, PNG_FORMAT_RGBA}) {
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    png.width = png.height = side / 2;
    png.format = format;
    png_alloc_size_t size = 0;
    EXPECT_NE(png_image_write_to_memory(&png, nullptr, &size, 0, pixels().data(), 0, nullptr), 0);
    std::string& bytes = result.emplace_back(size, '\0');
    EXPECT_NE(png_image_write_to_memory(&png, bytes.data(), &size, 0, pixels().data(), 0, nullptr), 0);
    bytes.resize(size);
  }
  return result;
}

std::vector<std::string> jpegs() {
  std::vector<std::string> result;
  const tjhandle encoder = tjInitCompress();
  using Kind = std::pair<int, int>;
  for (const auto& [sampling, flags] :
       {Kind{TJSAMP_420, 0}, Kind{TJSAMP_444, TJFLAG_PROGRESSIVE}, Kind{TJSAMP_GRAY, 0}}) {
    unsigned char* bytes = nullptr;
    unsigned long size = 0;  // NOLINT(google-runtime-int): TurboJPEG's own
    EXPECT_EQ(tjCompress2(encoder, pixels().data(), side, 0, side, TJPF_RGB, &bytes, &size, sampling, 80, flags), 0);
    result.emplace_back(reinterpret_cast<const char*>(bytes), size);
    tjFree(bytes);
  }
  tjDestroy(encoder);
  return result;
}

TEST(ImageFuzz, Corpus) {
  for (const std::string& bytes : corpus("image")) expect_bounded(bytes);
}

TEST(ImageFuzz, Truncated) {
  cut_short(pngs(), 300);
  cut_short(jpegs(), 300);
}

TEST(ImageFuzz, FlippedBitsAndOverwrittenBytes) {
  flip_and_overwrite(pngs(), 300);
  flip_and_overwrite(jpegs(), 2000);
}

TEST(ImageFuzz, OtherChunks) { change_fields(pngs(), 2000); }
TEST(ImageFuzz, RandomBytes) { random_bytes(); }

}  // namespace
}  // namespace graft::fuzz
