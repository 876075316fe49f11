// Tensors in memory, and NumPy's files of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graft/dtype.hpp"
#include "graft/toolkit/export.hpp"

namespace graft::toolkit {

/// A dense tensor in row-major order.
struct Tensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  ///< Empty for a scalar; no size is negative.
  std::vector<std::byte> data;      ///< size_of(dtype) bytes for each element, little endian.
};

/// By the names of a model's inputs or outputs.
using Tensors = std::map<std::string, Tensor>;

/// The same where the data are somebody else's.
struct TensorView {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
  /// Keeps the data for as long as anything refers to them; without one that is the caller's to do.
  std::shared_ptr<const void> owner = nullptr;
};
using TensorViews = std::map<std::string, TensorView>;

/// A tensor of f32 with a copy of these values, as many as the shape has elements.
[[nodiscard]] GRAFT_API Tensor make_tensor(std::vector<std::int64_t> shape, const std::vector<float>& values);

/// The elements of a tensor of f32. Throws Error for another type.
[[nodiscard]] GRAFT_API std::vector<float> values_of(const Tensor& tensor);

/// Every array of an .npz file, under its own name. Throws Error naming the file for one that cannot be read, and for
/// an array whose type is not among DType.
[[nodiscard]] GRAFT_API Tensors read_npz(const std::filesystem::path& file);

/// Writes an .npz file, whole or not at all.
GRAFT_API void write_npz(const std::filesystem::path& file, const Tensors& tensors);

}  // namespace graft::toolkit
