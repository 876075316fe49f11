// Input tensors from NumPy's files, and outputs into them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "cli/output_files.hpp"
#include "runtime/engine.hpp"

namespace graft::cli {

/// Each text is NAME=FILE.npy, NAME=FILE.npz:ARRAY, NAME=FILE.npz (one array inside, or one called NAME) or FILE.npz
/// (every array under its own name). Throws Error quoting the option and naming the file.
[[nodiscard]] TensorMap read_tensors(const std::string& option, const std::vector<std::string>& texts);

/// The files of such texts, or whatever else stands there.
[[nodiscard]] std::vector<NamedFile> tensor_files(const std::string& option, const std::vector<std::string>& texts);

/// Warns of each input of an option that has NaN, with their number: what is computed from NaN shows little else.
void warn_of_nan(const Console& console, const std::string& option, const TensorMap& tensors);

/// The shape of each.
[[nodiscard]] std::map<std::string, Shape, std::less<>> shapes_of(const TensorMap& tensors);

/// Throws Error for a name that ends neither in .npz nor in .npy.
void check_tensor_file(const std::string& path);

/// By the end of the name: .npz, or .npy for a single tensor. Throws Error for several of them, and for a type that
/// NumPy's files do not hold.
void write_tensors(const std::string& path, const TensorMap& tensors);

}  // namespace graft::cli
