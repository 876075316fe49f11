// Reads tensors of any type from NumPy files that are named on a command line, and writes such files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine.hpp"

namespace graft::toolkit {

/// Reads tensors. Each string is NAME=FILE.npy, NAME=FILE.npz:ARRAY, NAME=FILE.npz (a file with a single array, or with
/// an array NAME) or FILE.npz (every array by its own name). Throws Error quoting the option and naming the file.
[[nodiscard]] runtime::TensorMap read_tensors(const std::string& option, const std::vector<std::string>& texts);

/// Returns the path in each such string, whether or not it is a file.
[[nodiscard]] std::vector<std::string> tensor_files(const std::vector<std::string>& texts);

struct NanCount {
  std::string tensor;
  std::int64_t nan = 0;
  std::int64_t elements = 0;
};

/// Returns the tensors that have NaN elements. A comparison of results computed from NaN proves little.
[[nodiscard]] std::vector<NanCount> count_nan(const runtime::TensorMap& tensors);

/// Throws Error for a name that ends neither in .npz nor in .npy.
void check_tensor_file(const std::string& path);

/// Writes an .npz file, or an .npy file with a single tensor, by the end of the name. Throws Error for several tensors
/// in an .npy file, and for a type that NumPy files cannot hold.
void write_tensors(const std::string& path, const runtime::TensorMap& tensors);

}  // namespace graft::toolkit
