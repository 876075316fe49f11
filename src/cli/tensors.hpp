// Reads the tensors that options such as --data name.
#pragma once

#include <string>
#include <vector>

#include "cli/console.hpp"
#include "cli/output_files.hpp"
#include "graft/toolkit/tensor.hpp"

namespace graft::cli {

/// Reads the tensors of an option, as toolkit::read_tensors does, and prints a warning for each tensor that contains
/// NaN.
[[nodiscard]] toolkit::Tensors read_tensors(const Console& console, const std::string& option,
                                            const std::vector<std::string>& sources);

/// Returns the files of the tensors, for check_files_apart.
[[nodiscard]] std::vector<NamedFile> tensor_files(const std::string& option, const std::vector<std::string>& sources);

}  // namespace graft::cli
