// Writes the operators' timed cases as ONNX models, for runtimes that do not have Graft's operators.
#pragma once

#include <filesystem>

namespace graft::toolkit {

/// Writes a model for each benchmark of an operator (TimedCase) in f32 that standard operators can express. The name of
/// its file is the index of the benchmark, such as "3.onnx".
void write_timed_models(const std::filesystem::path& folder);

}  // namespace graft::toolkit
