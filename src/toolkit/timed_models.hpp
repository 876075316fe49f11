// Writes the operators' timed cases as ONNX models, for runtimes that do not have Graft's operators.
#pragma once

#include <filesystem>

namespace graft::toolkit {

/// Writes `<index of the timed case>.onnx` for each case in f32 that standard operators can express.
void write_timed_models(const std::filesystem::path& folder);

}  // namespace graft::toolkit
