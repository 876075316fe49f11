// Tensors of any type from NumPy's files as they are named on a command line, and into such files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine.hpp"

namespace graft::toolkit {

/// Each text is NAME=FILE.npy, NAME=FILE.npz:ARRAY, NAME=FILE.npz (one array inside, or one called NAME) or FILE.npz
/// (every array under its own name). Throws Error quoting the option and naming the file.
[[nodiscard]] runtime::TensorMap read_tensors(const std::string& option, const std::vector<std::string>& texts);

/// The files of such texts, or whatever else stands there.
[[nodiscard]] std::vector<std::string> tensor_files(const std::vector<std::string>& texts);

struct NanCount {
  std::string tensor;
  std::int64_t nan = 0;
  std::int64_t elements = 0;
};

/// The tensors that have NaN: what is computed from NaN shows little else.
[[nodiscard]] std::vector<NanCount> count_nan(const runtime::TensorMap& tensors);

/// Throws Error for a name that ends neither in .npz nor in .npy.
void check_tensor_file(const std::string& path);

/// By the end of the name: .npz, or .npy for a single tensor. Throws Error for several of them, and for a type that
/// NumPy's files do not hold.
void write_tensors(const std::string& path, const runtime::TensorMap& tensors);

}  // namespace graft::toolkit
