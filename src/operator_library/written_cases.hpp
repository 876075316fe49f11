// Writes the cases of operators to files, for tests in Python.
#pragma once

#include <filesystem>

namespace graft::operator_library {

/// Writes each case that a function of standard ONNX operators can run: the inputs and the results of the reference
/// kernel, one file for each tensor, and FOLDER/manifest.json, which lists the cases with the attributes, types and
/// shapes. Left out are cases that are refused or large, with vectorized layouts or moved addresses, without elements,
/// and whose inputs or results are not finite numbers of ordinary size, which standard operators may treat differently.
/// Throws std::runtime_error if a kernel fails or a file cannot be written.
void write_cases(const std::filesystem::path& folder);

}  // namespace graft::operator_library
