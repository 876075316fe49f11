// The check of the option --for, which names a release of TensorRT.
#pragma once

#include "cli/options.hpp"

namespace graft::cli {

/// Returns a check for releases whose rules are known: "rtx-1.5", "tensorrt-10.13".
[[nodiscard]] Check known_release();

}  // namespace graft::cli
