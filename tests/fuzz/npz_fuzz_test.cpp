// Tests the reader with malformed NumPy files: damaged arrays and archives.
#include "io/npy.hpp"
#include "tests/fuzz/spoiled.hpp"

namespace graft::fuzz {
namespace {

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> arrays() {
  std::vector<std::string> result;
  for (const onnx::ElementType type :
       {onnx::ElementType::f32, onnx::ElementType::u8, onnx::ElementType::i64, onnx::ElementType::bf16}) {
    const auto size = static_cast<std::size_t>(bits_of(type)) / 8;
    result.push_back(io::format_npy({.type = type, .shape = {2, 3}, .data = std::vector<std::byte>(6 * size)}));
  }
  return result;
}

std::vector<std::string> archives() {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "npz_fuzz_test.npz";
  const io::NpyArray array{.type = onnx::ElementType::u8, .shape = {300}, .data = std::vector<std::byte>(300)};
  io::write_npz(
      path, {{"a", array}, {"b", {.type = onnx::ElementType::f32, .shape = {}, .data = std::vector<std::byte>(4)}}});
  const std::string bytes = read_bytes(path);
  std::filesystem::remove(path);
  return {bytes};
}

TEST(NpzFuzz, Corpus) {
  for (const std::string& bytes : corpus("npz")) expect_bounded(bytes);
}

TEST(NpzFuzz, Truncated) {
  cut_short(arrays(), 200);
  cut_short(archives(), 1000);
}

TEST(NpzFuzz, FlippedBitsAndOverwrittenBytes) {
  flip_and_overwrite(arrays(), 2000);
  flip_and_overwrite(archives(), 4000);
}

TEST(NpzFuzz, OtherHeaders) { change_fields(arrays(), 2000); }
TEST(NpzFuzz, RandomBytes) { random_bytes(); }

}  // namespace
}  // namespace graft::fuzz
