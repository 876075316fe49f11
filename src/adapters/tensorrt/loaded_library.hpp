// Which shared libraries this process has loaded.
#pragma once

#include <string_view>

namespace graft::tensorrt {

/// Whether the file name of one of them begins so.
[[nodiscard]] bool is_loaded(std::string_view file_name);

/// Of the TensorRT that this process has loaded, 101500 for 10.15; 0 where there is none, and for TensorRT-RTX.
[[nodiscard]] int tensorrt_version();

}  // namespace graft::tensorrt
