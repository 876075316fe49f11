// The operators' timed cases as ONNX models, for runtimes that know no operator of Graft's.
#pragma once

#include <filesystem>

namespace graft::toolkit {

/// Writes `<number among the timed cases>.onnx` for each case in f32 that standard operators can express.
void write_timed_models(const std::filesystem::path& folder);

}  // namespace graft::toolkit
