// Tensors that options name.
#pragma once

#include <string>
#include <vector>

#include "cli/console.hpp"
#include "cli/output_files.hpp"
#include "toolkit/tensor_files.hpp"

namespace graft::cli {

/// The tensors of an option, as toolkit::read_tensors reads them, with a warning for each that has NaN.
[[nodiscard]] runtime::TensorMap read_tensors(const Console& console, const std::string& option,
                                              const std::vector<std::string>& texts);

/// Their files, for check_files_apart.
[[nodiscard]] std::vector<NamedFile> tensor_files(const std::string& option, const std::vector<std::string>& texts);

}  // namespace graft::cli
