// The engine that this build of Graft has.
#pragma once

#include "runtime/engine.hpp"

namespace graft::runtime {

/// OpenVINO, or null_engine() in a build without it. Programs and tests choose it; libraries are given an engine.
[[nodiscard]] const Engine& default_engine();

}  // namespace graft::runtime
