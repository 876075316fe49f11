// The GPUs for which this build's plugin library has code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graft::toolkit {

/// Returns the architectures in CMake's notation: "75-real" is machine code, "90-virtual" is PTX, which the driver of a
/// newer GPU compiles when it loads the code, and "90" is both. Empty in a build without CUDA.
[[nodiscard]] std::vector<std::string> cuda_architectures();

/// Returns the architectures as text: "sm75, sm80, PTX for sm90 and later".
[[nodiscard]] std::string architectures_text(const std::vector<std::string>& architectures);

/// Returns whether code for these architectures runs on a target of `--target`, for example "sm89". Machine code runs
/// on GPUs of the same generation that are not older; on the GPUs of Jetson modules only their own. True for a target
/// that is not such a name.
[[nodiscard]] bool runs_on(const std::vector<std::string>& architectures, std::string_view target);

struct TargetsByCode {
  std::vector<std::string> with_code;  ///< The targets for which this build's plugin library has code.
  std::vector<std::string> without_code;
};

/// Splits targets such as "sm89" by whether this build's plugin library has code for them.
[[nodiscard]] TargetsByCode split_by_code(const std::vector<std::string>& targets);

/// Returns the GPUs for which TensorRT-RTX builds if no target is set, according to its documentation.
[[nodiscard]] TargetsByCode default_targets();

/// Returns the architectures of gpu_architectures() for which this build's plugin library has no code.
[[nodiscard]] std::vector<std::string> targets_without_code();

}  // namespace graft::toolkit
