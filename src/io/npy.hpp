// NumPy's array files: .npy (one array) and .npz (a zip archive of them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/tensor_data.hpp"

struct zip;  // of libzip

namespace graft::onnx {
class MappedFile;
}  // namespace graft::onnx

namespace graft::io {

/// A row-major, little-endian array. bf16, for which NumPy has no type, is stored as ml_dtypes does: two opaque bytes.
struct NpyArray {
  onnx::ElementType type = onnx::ElementType::f32;
  std::vector<std::int64_t> shape;  ///< Empty for a scalar.
  std::vector<std::byte> data;

  /// Product of the shape; 1 for a scalar.
  [[nodiscard]] std::int64_t element_count() const;
};

/// In the order of their names, which carry no ".npy".
using NpzArrays = std::map<std::string, NpyArray, std::less<>>;

/// A .npz archive, of which is read what is asked for and nothing else: the other arrays may be of any size, or
/// damaged.
class NpzFile {
 public:
  /// Reads the archive's directory. Throws Error as read_npz does.
  explicit NpzFile(const std::filesystem::path& path);
  /// The bytes of a file, which must outlive this; `name` stands for it in messages.
  NpzFile(std::string_view bytes, std::string name);

  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool contains(std::string_view array) const { return entries_.contains(array); }

  /// Type and shape; no data are read, or made room for.
  [[nodiscard]] NpyArray read_header(std::string_view array) const;
  /// Throws Error for an array that the archive has not, and as read_npz does.
  [[nodiscard]] NpyArray read(std::string_view array) const;
  [[nodiscard]] NpzArrays read_all() const;

 private:
  struct Closer {
    void operator()(zip* archive) const;
  };
  struct Entry {
    std::uint64_t index;
    std::uint64_t size;  // uncompressed, as the directory says
  };

  NpzFile(std::shared_ptr<const onnx::MappedFile> file, std::string name);

  [[nodiscard]] std::string shown(std::string_view entry) const;
  [[nodiscard]] const Entry& find(std::string_view array) const;

  std::string name_;
  std::size_t file_size_;
  std::shared_ptr<const onnx::MappedFile> file_;
  std::unique_ptr<zip, Closer> archive_;
  std::map<std::string, Entry, std::less<>> entries_;
};

/// Throws Error naming the file (and, in an archive, the array) for one that cannot be read, is truncated or damaged,
/// or holds a type that NpyArray has not: text, objects, records, complex numbers, big-endian numbers. An archive is
/// refused, before anything of it is inflated, where what is asked for takes more than 256 MiB and 200 times the file's
/// size.
[[nodiscard]] NpyArray read_npy(const std::filesystem::path& path);
[[nodiscard]] NpzArrays read_npz(const std::filesystem::path& path);

/// The bytes of a file; `name` stands for it in messages.
[[nodiscard]] NpyArray parse_npy(std::string_view bytes, std::string_view name);
[[nodiscard]] NpzArrays parse_npz(std::string_view bytes, const std::string& name);
[[nodiscard]] std::string format_npy(const NpyArray& array);

/// Written whole or not at all. Throws Error naming the file and the system's reason.
void write_npy(const std::filesystem::path& path, const NpyArray& array);
/// An archive holds at least one array; an empty one is refused.
void write_npz(const std::filesystem::path& path, const NpzArrays& arrays);

}  // namespace graft::io
