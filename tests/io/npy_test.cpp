// Tests NumPy's files: files of NumPy are read, damaged files are refused, and files are written completely or not at
// all.
#include "io/npy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "graft/error.hpp"

namespace graft::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Returns a file in the format of np.save (NumPy 2.4); the tests use np.arange(6, dtype='<i2').reshape(2, 3) and its
// transposition.
std::string numpy_file(const std::string& header, const std::string& data) {
  std::string padded = header;
  padded.append(117 - header.size(), ' ');
  padded += '\n';
  return std::string("\x93NUMPY\1\0v\0", 10) + padded + data;
}
const std::string six("\0\0\1\0\2\0\3\0\4\0\5\0", 12);

std::vector<std::int16_t> shorts(const NpyArray& array) {
  std::vector<std::int16_t> values(array.data.size() / 2);
  std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

class NpyFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("graft_npy_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::filesystem::path folder_;
};

TEST(Npy, ReadsWhatNumPyWrote) {
  const NpyArray array =
      parse_npy(numpy_file("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }", six), "six.npy");
  EXPECT_EQ(array.type, onnx::ElementType::i16);
  EXPECT_THAT(array.shape, ElementsAre(2, 3));
  EXPECT_THAT(shorts(array), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Npy, TurnsColumnMajorIntoRowMajor) {
  const NpyArray array =
      parse_npy(numpy_file("{'descr': '<i2', 'fortran_order': True, 'shape': (3, 2), }", six), "six.npy");
  EXPECT_THAT(array.shape, ElementsAre(3, 2));
  EXPECT_THAT(shorts(array), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(Npy, ReadsScalarsEmptyArraysAndOpaqueBfloat16) {
  EXPECT_TRUE(parse_npy(numpy_file("{'descr': '|i1', 'fortran_order': False, 'shape': (), }", "x"), "s").shape.empty());
  const NpyArray empty = parse_npy(numpy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 7), }", ""), "e");
  EXPECT_EQ(empty.element_count(), 0);
  EXPECT_EQ(parse_npy(numpy_file("{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }", "ab"), "b").type,
            onnx::ElementType::bf16);
}

TEST(Npy, RefusesWhatItCannotRepresent) {
  const auto header = [](const std::string& descr) {
    return numpy_file("{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,), }", "12345678");
  };
  for (const char* descr : {"'>f4'", "'<c8'", "'<U2'", "'|S8'"}) {
    EXPECT_THAT([&] { static_cast<void>(parse_npy(header(descr), "x.npy")); },
                ThrowsMessage<Error>(HasSubstr("x.npy: the element type is")))
        << descr;
  }
  EXPECT_THAT([&] { static_cast<void>(parse_npy(header("[('a', '<f4'), ('b', '<f4')]"), "x.npy")); },
              ThrowsMessage<Error>(HasSubstr("structured")));
  EXPECT_THAT([&] { static_cast<void>(parse_npy(header("'|O'"), "x.npy")); },
              ThrowsMessage<Error>(HasSubstr("x.npy: the array contains Python objects")));
}

TEST(Npy, RefusesDamage) {
  const std::string good = numpy_file("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }", six);
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_THROW(static_cast<void>(parse_npy(good.substr(0, length), "cut")), Error) << length;
  }
  EXPECT_THROW(static_cast<void>(parse_npy(good + "x", "long")), Error);
  for (const char* shape : {"(2, -3)", "(2, 3", "(2 3)", "(9223372036854775807, 2)", "(99999999999999999999,)", "2",
                            "(4611686018427387904, 8)"}) {
    EXPECT_THROW(
        static_cast<void>(parse_npy(
            numpy_file("{'descr': '<i2', 'fortran_order': False, 'shape': " + std::string(shape) + ", }", six), "x")),
        Error)
        << shape;
  }
  // Any byte of the header may be wrong: the result is an error or a valid array.
  for (std::size_t i = 0; i < 128; ++i) {
    for (const char wrong : {'\0', '\xFF', '(', ',', '9', '\''}) {
      std::string damaged = good;
      damaged[i] = wrong;
      try {
        const NpyArray array = parse_npy(damaged, "damaged");
        EXPECT_EQ(array.data.size(), six.size());
      } catch (const Error&) {
      }
    }
  }
}

TEST_F(NpyFiles, RoundTrip) {
  const NpyArray a{.type = onnx::ElementType::f32, .shape = {2}, .data = std::vector<std::byte>(8, std::byte{7})};
  const NpyArray b{.type = onnx::ElementType::i64, .shape = {}, .data = std::vector<std::byte>(8, std::byte{1})};
  write_npy(folder_ / "a.npy", a);
  EXPECT_EQ(read_npy(folder_ / "a.npy").data, a.data);
  write_npz(folder_ / "all.npz", {{"a", a}, {"b", b}});
  write_npz(folder_ / "all.npz", {{"b", b}, {"c", a}});  // replaces the first
  const NpzArrays arrays = read_npz(folder_ / "all.npz");
  ASSERT_EQ(arrays.size(), 2U);
  EXPECT_EQ(arrays.at("c").shape, a.shape);
  EXPECT_EQ(arrays.at("b").data, b.data);
  EXPECT_EQ(file_count(), 2U);
}

TEST_F(NpyFiles, AnArchiveDoesNotDependOnTheTime) {
  const NpyArray array{.type = onnx::ElementType::f32, .shape = {2}, .data = std::vector<std::byte>(8, std::byte{7})};
  write_npz(folder_ / "all.npz", {{"a", array}, {"b", array}});
  std::ifstream file(folder_ / "all.npz", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  int entries = 0;
  for (std::size_t at = bytes.find("PK\1\2"); at != std::string::npos; at = bytes.find("PK\1\2", at + 1)) {
    // An entry of the central directory has the time and the date at byte 12. 0x0021 is the first of January 1980.
    EXPECT_EQ(bytes.substr(at + 12, 4), std::string("\0\0\x21\0", 4));
    ++entries;
  }
  EXPECT_EQ(entries, 2);
}

TEST_F(NpyFiles, OneArrayOfAnArchive) {
  const NpyArray a{.type = onnx::ElementType::f32, .shape = {2}, .data = std::vector<std::byte>(8, std::byte{7})};
  write_npz(folder_ / "all.npz", {{"a", a}, {"b", a}});
  const NpzFile archive(folder_ / "all.npz");
  EXPECT_EQ(archive.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(archive.contains("c"));
  EXPECT_EQ(archive.read_header("b").shape, a.shape);
  EXPECT_TRUE(archive.read_header("b").data.empty());
  EXPECT_EQ(archive.read("b").data, a.data);
  EXPECT_EQ(archive.read("b").data, a.data);  // repeated reads work
  EXPECT_THAT([&] { static_cast<void>(archive.read("c")); }, ThrowsMessage<Error>(HasSubstr("no array c")));
}

TEST_F(NpyFiles, DataBeginsAtAMultipleOf64) {
  const NpyArray array{.type = onnx::ElementType::u8, .shape = {1, 2, 3}, .data = std::vector<std::byte>(6)};
  EXPECT_EQ(format_npy(array).size() % 64, 6U);
}

TEST_F(NpyFiles, MissingAndDamagedFilesAreNamed) {
  EXPECT_THAT([&] { static_cast<void>(read_npy(folder_ / "no.npy")); }, ThrowsMessage<Error>(HasSubstr("no.npy")));
  EXPECT_THAT([&] { static_cast<void>(read_npz(folder_ / "no.npz")); }, ThrowsMessage<Error>(HasSubstr("no.npz")));
  write_npz(folder_ / "all.npz",
            {{"a", {.type = onnx::ElementType::u8, .shape = {3}, .data = std::vector<std::byte>(3)}}});
  std::string bytes;
  {
    std::ifstream file(folder_ / "all.npz", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  for (std::size_t length = 0; length < bytes.size(); length += 7) {
    std::ofstream(folder_ / "cut.npz", std::ios::binary | std::ios::trunc) << bytes.substr(0, length);
    EXPECT_THAT([&] { static_cast<void>(read_npz(folder_ / "cut.npz")); }, ThrowsMessage<Error>(HasSubstr("cut.npz")));
  }
}

TEST_F(NpyFiles, RegularFilesAndLinksAreReplaced) {
  const NpyArray array{.type = onnx::ElementType::u8, .shape = {3}, .data = std::vector<std::byte>(3)};
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT([&] { write_npz(folder_ / "pipe", {{"a", array}}); }, ThrowsMessage<Error>(HasSubstr("a pipe")));
  EXPECT_THAT([&] { write_npy(folder_ / "pipe", array); }, ThrowsMessage<Error>(HasSubstr("a pipe")));
  EXPECT_TRUE(std::filesystem::is_fifo(folder_ / "pipe"));
  std::filesystem::create_symlink("real.npz", folder_ / "link.npz");
  write_npz(folder_ / "link.npz", {{"a", array}});
  // A write through a link would change a file outside of the folder.
  EXPECT_FALSE(std::filesystem::is_symlink(folder_ / "link.npz"));
  EXPECT_EQ(read_npz(folder_ / "link.npz").size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "real.npz"));
}

TEST_F(NpyFiles, NothingIsLeftWhereWritingFails) {
  const NpyArray array{.type = onnx::ElementType::u8, .shape = {3}, .data = std::vector<std::byte>(3)};
  EXPECT_THROW(write_npz(folder_ / "missing" / "a.npz", {{"a", array}}), Error);
  EXPECT_THROW(write_npy(folder_ / "missing" / "a.npy", array), Error);
  EXPECT_THROW(write_npz(folder_ / "a.npz", {}), Error);
  EXPECT_EQ(file_count(), 0U);
}

}  // namespace
}  // namespace graft::io
