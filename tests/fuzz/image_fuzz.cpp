// Fuzzes the reading of PNG and JPEG, and their preparation by a recipe.
#include <zlib.h>

#include <random>

#include "data/images.hpp"
#include "graft/error.hpp"
#include "tests/fuzz/counting.hpp"
#include "tests/fuzz/target.hpp"

namespace graft::fuzz {
namespace {

constexpr std::size_t png_begin = 8;
constexpr std::size_t around_chunk = 12;  // length, kind and checksum

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char c : bytes.substr(0, 4)) value = value << 8U | static_cast<unsigned char>(c);
  return value;
}

}  // namespace

void run(std::string_view bytes) {
  // The file, pixels and coefficients, and the decoders' memory for a few rows and their tables.
  constexpr std::size_t most = std::size_t{224} << 20U;
  const Counting while_it_runs(most, most);
  try {
    const data::Image image = data::parse_image(bytes, "fuzz");
    constexpr std::int64_t few = std::int64_t{1} << 20U;
    if (image.height * image.width > few) return;
    data::ImageRecipe recipe;
    recipe.resize = data::ImageRecipe::Size{7, 5};
    (void)prepare_image(image, recipe, "fuzz");
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::internal) throw;
  }
}

/// Changes bytes within a chunk of a PNG, and updates the chunk's checksum.
std::string mutate(std::string_view bytes, std::uint64_t seed) {
  std::string changed(bytes);
  if (bytes.size() < png_begin + around_chunk || bytes[0] != '\x89') return "";
  std::mt19937_64 random(seed);
  std::size_t begin = png_begin;
  while (begin + around_chunk <= bytes.size()) {
    const std::size_t length = big_endian(bytes.substr(begin));
    if (length > bytes.size() - begin - around_chunk) return "";
    if (length > 0 && random() % 3 == 0) {
      for (std::uint64_t i = 0; i <= seed % 4; ++i)
        changed[begin + 8 + random() % length] = static_cast<char>(random());
      const auto* chunk = reinterpret_cast<const Bytef*>(changed.data() + begin + 4);
      auto sum = static_cast<std::uint32_t>(::crc32(0, chunk, static_cast<uInt>(length + 4)));
      for (std::size_t i = 4; i-- > 0; sum >>= 8U) changed[begin + 8 + length + i] = static_cast<char>(sum & 0xFFU);
    }
    begin += length + around_chunk;
  }
  return changed;
}

}  // namespace graft::fuzz
