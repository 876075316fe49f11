// NumPy's array files: .npy (one array) and .npz (a zip archive of them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/tensor_data.hpp"

namespace graft {

/// A row-major, little-endian array. bf16, for which NumPy has no type, is stored as ml_dtypes does: two opaque bytes.
struct NpyArray {
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;  ///< Empty for a scalar.
  std::vector<std::byte> data;

  /// Product of the shape; 1 for a scalar.
  [[nodiscard]] std::int64_t element_count() const;
};

/// In the order of their names, which carry no ".npy".
using NpzArrays = std::map<std::string, NpyArray, std::less<>>;

/// Throws Error naming the file (and, in an archive, the array) for one that cannot be read, is truncated or damaged,
/// or holds a type that NpyArray has not: text, objects, records, complex numbers, big-endian numbers. An archive is
/// refused, before anything of it is inflated, where its arrays take more than 256 MiB and 200 times its size.
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

}  // namespace graft
