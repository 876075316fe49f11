// Composes the `graft verify` commands that repeat comparisons.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graft/toolkit/import.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

/// Returns " --operators LIB" for each loaded library of operators, which a printed command needs as well.
[[nodiscard]] std::string library_options();

/// Returns " --input NAME:SIZES" for each shape, with ? for a dynamic dimension.
[[nodiscard]] std::string shape_options(const Shapes& shapes);

/// Returns the command that compares two models. `data` are sources of tensors as for read_tensors.
[[nodiscard]] std::string verify_command(const ModelFiles& reference, const std::filesystem::path& candidate,
                                         const std::vector<std::string>& data = {}, const Shapes& shapes = {},
                                         std::optional<double> snr_db = {});

}  // namespace graft::toolkit
