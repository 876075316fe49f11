// The release of TensorRT that a command is asked about.
#pragma once

#include "cli/options.hpp"

namespace graft::cli {

/// A release of which rules are known: "rtx-1.5", "tensorrt-10.13".
[[nodiscard]] Check known_release();

}  // namespace graft::cli
