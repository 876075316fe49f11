// The GPUs that this build's plugin library has code for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graft::toolkit {

/// As CMake writes them: "75-real" is machine code, "90-virtual" PTX, which newer GPUs compile as they load it, "90"
/// both. Empty in a build without CUDA.
[[nodiscard]] std::vector<std::string> cuda_architectures();

/// "sm75, sm80, PTX for sm90 and later".
[[nodiscard]] std::string architectures_text(const std::vector<std::string>& architectures);

/// Whether code for those runs on a GPU that is named as `--target` names it: "sm89". Machine code runs on GPUs of the
/// same generation that are not older. What is no such name is taken as one that it runs on.
[[nodiscard]] bool runs_on(const std::vector<std::string>& architectures, std::string_view target);

/// The GPUs that TensorRT-RTX builds for where no target is given, as its documentation says.
struct DefaultTargets {
  std::vector<std::string> with_code;  ///< For which this build's plugin library has code.
  std::vector<std::string> without_code;
};
[[nodiscard]] DefaultTargets default_targets();

}  // namespace graft::toolkit
