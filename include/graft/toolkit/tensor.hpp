// Tensors in memory and in NumPy's files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graft/toolkit/export.hpp"

namespace graft::toolkit {

/// The element type of a network's input or output, under ONNX's code.
enum class TensorType : std::int32_t {
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  bf16 = 16,
  f8e4m3fn = 17,
};

/// Returns the bytes of an element in memory; a boolean takes one byte.
[[nodiscard]] GRAFT_API std::size_t size_of(TensorType type);

/// Returns "f32", "f16", "bf16", "f64", "i8", "u8" ..., "u64", "bool" or "f8e4m3fn".
[[nodiscard]] GRAFT_API std::string to_string(TensorType type);

/// Parses the result of to_string; returns nothing for any other text.
[[nodiscard]] GRAFT_API std::optional<TensorType> parse_tensor_type(std::string_view text);

/// A dense tensor in row-major order.
struct Tensor {
  TensorType dtype = TensorType::f32;
  std::vector<std::int64_t> shape;  ///< Empty for a scalar; no size is negative.
  std::vector<std::byte> data;      ///< size_of(dtype) bytes for each element, little endian.
};

/// Tensors by the name of a model's input or output. As data for a model with one input, the name may be empty.
using Tensors = std::map<std::string, Tensor>;

/// A tensor whose data belong to the caller or to `owner`; row-major and little endian like Tensor.
struct TensorView {
  TensorType dtype = TensorType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
  /// Keeps the data alive as long as a view or a tensor refers to them. If null, the caller has to keep the data alive.
  std::shared_ptr<const void> owner = nullptr;
};
using TensorViews = std::map<std::string, TensorView>;

/// Returns views of the tensors, which have to outlive the views.
[[nodiscard]] GRAFT_API TensorViews views_of(const Tensors& tensors);

/// Returns an f32 tensor with a copy of the values. Throws Error if the shape does not have that many elements.
[[nodiscard]] GRAFT_API Tensor make_tensor(std::vector<std::int64_t> shape, const std::vector<float>& values);

/// Returns the elements of an f32 tensor. Throws Error for another type.
[[nodiscard]] GRAFT_API std::vector<float> values_of(const Tensor& tensor);

/// Reads every array of an .npz file, by its name. Throws Error naming the file for a file that cannot be read, and for
/// an array whose type is not a TensorType.
[[nodiscard]] GRAFT_API Tensors read_npz(const std::filesystem::path& file);

/// Writes an .npz file, completely or not at all. Throws Error for a file that cannot be written, no tensor, and data
/// that do not fit the shape.
GRAFT_API void write_npz(const std::filesystem::path& file, const Tensors& tensors);

/// Writes an .npz file or, if the name ends in .npy, an .npy file with a single tensor; completely or not at all.
/// Throws Error for several tensors in an .npy file, and as write_npz does.
GRAFT_API void write_tensors(const std::filesystem::path& file, const TensorViews& tensors);
}  // namespace graft::toolkit
