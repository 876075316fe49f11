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

struct zip;  // libzip's archive

namespace graft::onnx {
class MappedFile;
}  // namespace graft::onnx

namespace graft::io {

/// A row-major, little-endian array. bf16, for which NumPy has no type, is stored as two opaque bytes, as ml_dtypes
/// does.
struct NpyArray {
  onnx::ElementType type = onnx::ElementType::f32;
  std::vector<std::int64_t> shape;  ///< The dimensions; empty for a scalar.
  std::vector<std::byte> data;

  /// Returns the product of the shape; 1 for a scalar.
  [[nodiscard]] std::int64_t element_count() const;
};

/// Arrays by name, without the suffix ".npy".
using NpzArrays = std::map<std::string, NpyArray, std::less<>>;

/// A .npz archive. Arrays are read only when they are requested, so other arrays may have any size or be damaged.
class NpzFile {
 public:
  /// Reads the archive's directory. Throws Error as read_npz does.
  explicit NpzFile(const std::filesystem::path& path);
  /// Opens an archive in memory. `bytes` must outlive this object; `name` stands for the file in messages.
  NpzFile(std::string_view bytes, std::string name);

  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool contains(std::string_view array) const { return entries_.contains(array); }

  /// Returns the type and shape of an array without reading its data or allocating memory for it.
  [[nodiscard]] NpyArray read_header(std::string_view array) const;
  /// Reads an array with its data. Throws Error for an array that is not in the archive, and as read_npz does.
  [[nodiscard]] NpyArray read(std::string_view array) const;
  [[nodiscard]] NpzArrays read_all() const;

 private:
  struct Closer {
    void operator()(zip* archive) const;
  };
  struct Entry {
    std::uint64_t index;
    std::uint64_t size;  // the uncompressed size in the directory
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

/// Reads a .npy file or, with read_npz, a .npz archive. Throws Error naming the file (and, in an archive, the array) if
/// it cannot be read, is truncated or damaged, or contains a type that NpyArray lacks: strings, objects, records,
/// complex numbers, big-endian numbers. An archive is refused before anything is inflated if the requested arrays take
/// more than 256 MiB and more than 200 times the size of the file.
[[nodiscard]] NpyArray read_npy(const std::filesystem::path& path);
/// Returns the type and shape of a .npy file without reading its data.
[[nodiscard]] NpyArray read_npy_header(const std::filesystem::path& path);
[[nodiscard]] NpzArrays read_npz(const std::filesystem::path& path);

/// Parses the bytes of a .npy file or a .npz archive; `name` stands for the file in messages.
[[nodiscard]] NpyArray parse_npy(std::string_view bytes, std::string_view name);
[[nodiscard]] NpzArrays parse_npz(std::string_view bytes, const std::string& name);
[[nodiscard]] std::string format_npy(const NpyArray& array);

/// Writes a .npy file, completely or not at all. Throws Error naming the file and the system's reason.
void write_npy(const std::filesystem::path& path, const NpyArray& array);
/// Writes a .npz archive, completely or not at all. Throws Error if there is no array.
void write_npz(const std::filesystem::path& path, const NpzArrays& arrays);

}  // namespace graft::io
