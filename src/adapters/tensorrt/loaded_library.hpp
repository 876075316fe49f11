// Which shared libraries this process has loaded.
#pragma once

#include <string_view>

namespace graft::tensorrt {

/// Whether the file name of one of them begins so.
[[nodiscard]] bool is_loaded(std::string_view file_name);

}  // namespace graft::tensorrt
