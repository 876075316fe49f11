// Writes the files of a network that was cut in two.
#pragma once

#include <filesystem>

#include "graft/toolkit/cut.hpp"

namespace graft::present {

/// The implementation of toolkit::save, for the program.
toolkit::CutFiles write_cut(toolkit::CutResult& result, const std::filesystem::path& file);

}  // namespace graft::present
