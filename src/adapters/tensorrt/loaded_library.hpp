// Finds the shared libraries that this process has loaded.
#pragma once

#include <string_view>

namespace graft::tensorrt {

/// Returns whether a library whose file name begins with `file_name` is loaded.
[[nodiscard]] bool is_loaded(std::string_view file_name);

/// Returns the version of the loaded TensorRT, such as 101500 for 10.15; 0 if no TensorRT is loaded, and for
/// TensorRT-RTX.
[[nodiscard]] int tensorrt_version();

}  // namespace graft::tensorrt
