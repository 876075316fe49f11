// The script that `canary` writes.
#pragma once

#include <string_view>

namespace graft::toolkit {

/// Returns the text of templates/canary/run_canary.py. CMake generates the definition.
[[nodiscard]] std::string_view canary_script();

}  // namespace graft::toolkit
